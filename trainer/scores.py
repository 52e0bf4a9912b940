"""Scores judgements for metrics. Pure.

Success is the verdict: rewards may be partial or shaped, so their mean is a figure of its own.
"""

from collections.abc import Collection
from dataclasses import dataclass

from schemas.messages import Judgement, Verdict


@dataclass(frozen=True, slots=True)
class Score:
    """Of an episode that has a verdict."""

    success: bool
    reward: float


def is_success(judgement: Judgement) -> bool:
    """Whatever its reward: shaping may push that below zero, or a failure's above."""
    return judgement.verdict is Verdict.SUCCESS


def score(judgement: Judgement) -> Score | None:
    """None: it counts for nothing, since nobody came to a verdict."""
    if judgement.verdict not in (Verdict.SUCCESS, Verdict.FAILURE) or judgement.reward is None:
        return None
    return Score(success=is_success(judgement), reward=judgement.reward)


def success_share(scores: Collection[Score]) -> float | None:
    return sum(scored.success for scored in scores) / len(scores) if scores else None


def mean_reward(scores: Collection[Score]) -> float | None:
    return sum(scored.reward for scored in scores) / len(scores) if scores else None
