"""Defines judges: a finished episode in, a ruling out."""

import math
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol

from judges.episode import JudgedEpisode
from schemas.messages import JudgeProtocol, RewardPart, StageUsage, StageVerdict, Trajectory, Verdict

OUTCOME = "outcome"
"""The part of a reward that the judge itself gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What one judge found. `reward` is None exactly when nothing may be trained on the trajectory.

    The reward is the sum of its parts; without any it is one part, `outcome`.
    """

    verdict: Verdict
    reward: float | None
    stages: tuple[StageVerdict, ...] = ()
    parts: tuple[RewardPart, ...] = ()
    usage: tuple[StageUsage, ...] = ()
    """What it took, whatever came of it."""
    protocols: tuple[JudgeProtocol, ...] = ()
    """How models were asked."""
    blocked: bool = False
    """The site blocked the agent: no success, and no failure either."""
    error: str = ""
    curable: bool = False
    """There is no verdict, and another attempt may find one."""

    def __post_init__(self) -> None:
        """Raises `ValueError` for what contradicts itself, since people write rulings too."""
        scored = self.verdict in (Verdict.SUCCESS, Verdict.FAILURE)
        if scored != (self.reward is not None):
            raise ValueError(f"{self.verdict} with reward {self.reward}")
        if (self.blocked and scored) or (self.curable and self.verdict is not Verdict.ERROR):
            raise ValueError(f"{self.verdict} with blocked={self.blocked} and curable={self.curable}")
        if self.reward is None:
            return
        if not self.parts:
            object.__setattr__(self, "parts", (RewardPart(OUTCOME, self.reward),))
        total = sum(part.value for part in self.parts)
        if not math.isfinite(self.reward) or not math.isclose(total, self.reward, rel_tol=1e-6, abs_tol=1e-6):
            raise ValueError(f"reward {self.reward} is not the sum of {self.parts}")
        if not all(map(math.isfinite, self.step_rewards)):
            raise ValueError(f"a step earned what is no number: {self.step_rewards}")

    @property
    def step_rewards(self) -> tuple[float, ...]:
        """What each step earned; empty when the episode's end earned everything."""
        return tuple(sum(earned) for earned in zip_longest(*(part.steps for part in self.parts), fillvalue=0.0))


def scored(*, passed: bool, stages: tuple[StageVerdict, ...] = (), usage: tuple[StageUsage, ...] = ()) -> Ruling:
    """Success with reward 1, or failure with reward 0."""
    verdict, reward = (Verdict.SUCCESS, 1.0) if passed else (Verdict.FAILURE, 0.0)
    return Ruling(verdict=verdict, reward=reward, stages=stages, usage=usage)


def unreadable(trajectory: Trajectory) -> Ruling:
    """Failure with what its environment took off so far, if anything: with 0 it would pay to say what nobody can read."""
    reward = min(0.0, trajectory.environment_reward or 0.0)
    steps = trajectory.environment_step_rewards if reward else ()
    return Ruling(verdict=Verdict.FAILURE, reward=reward, parts=(RewardPart(OUTCOME, reward, steps),))


def excluded(reason: str) -> Ruling:
    """The episode did not come to an end that can be judged."""
    return Ruling(verdict=Verdict.EXCLUDED, reward=None, error=reason)


def undecided(
    reason: str, *, stages: tuple[StageVerdict, ...] = (), usage: tuple[StageUsage, ...] = (), curable: bool = False
) -> Ruling:
    """No verdict could be had, after every retry unless it is `curable`."""
    return Ruling(verdict=Verdict.ERROR, reward=None, error=reason, stages=stages, usage=usage, curable=curable)


class Judge(Protocol):
    """Scores finished trajectories."""

    @property
    def name(self) -> str:
        """Name and version, as one subject token, as in `environment_v1`."""
        ...

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        """Rules on an episode whose outcome is finished.

        A judge that knows what it took although there is no verdict returns `undecided` instead of raising,
        `curable` where it would raise `JudgeError`.

        Raises:
            JudgeError: it failed; the worker asks again. Never a reward of zero instead.
            NoVerdict: none can be had, and asking again is of no use.
        """
        ...
