"""Judges made of other judges. A success needs every verdict that it rests on: a part without one is never counted as passed.

Parts are asked one after the other, as written (write the cheap ones first), until no further part could change the outcome:

| | `all` | `any` | `weighted` |
|---|---|---|---|
| success | every part is a success | a part is a success | the mean reward reaches the threshold |
| failure | a part is a failure, whatever became of the others | every part is a failure | it does not |
| no verdict | else | else | a part has none |
| excluded | a part is excluded (as when it finds the site blocked) before another decided | likewise | likewise |

An error that another attempt may cure makes the whole be asked again, unless other parts decide. A judge that stands in
several composites is asked once an attempt, and what it took is counted once. Rewards of `all` and `any` are 1 and 0; of
`weighted` they are the weighted mean, with a part of the reward for each judge and its steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from judges.attempts import ask_once
from judges.episode import JudgedEpisode
from judges.judge import Judge, Ruling, scored, undecided
from schemas.judge_config import Composite
from schemas.messages import RewardPart, StageUsage, StageVerdict, Verdict

_TOLERANCE = 1e-9
"""Of a mean that reaches the threshold but for the rounding of its sum."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What one judge found."""

    judge: str
    ruling: Ruling


class CompositeJudge:
    """Asks its parts as the table above says.

    `judges` are those of `composite.parts`, in that order; two of different files may have one name.
    """

    def __init__(self, name: str, composite: Composite, judges: Sequence[Judge]) -> None:
        self.name = name
        self._composite = composite
        self._judges = tuple(judges)

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        """The ruling is curable when a part failed, and another attempt may decide."""
        return await self._judge(episode, {})

    async def _judge(self, episode: JudgedEpisode, known: dict[int, Ruling]) -> Ruling:
        """`known`: what judges have found in this attempt, by `id`, for the next composite that has them."""
        asked: list[_Part] = []
        for judge in self._judges:
            asked.append(_Part(judge.name, await _found(judge, episode, known)))
            if self._is_decided_by(asked[-1].ruling.verdict):
                break
        return self._combined(asked)

    def _is_decided_by(self, verdict: Verdict) -> bool:
        match self._composite.combine:
            case "all":
                return verdict in (Verdict.FAILURE, Verdict.EXCLUDED)
            case "any":
                return verdict in (Verdict.SUCCESS, Verdict.EXCLUDED)
            case "weighted":
                return verdict in (Verdict.ERROR, Verdict.EXCLUDED)

    def _combined(self, asked: Sequence[_Part]) -> Ruling:
        stages = tuple(stage for part in asked for stage in _named(part))
        usage = tuple(usage for part in asked for usage in part.ruling.usage)
        protocols = tuple(protocol for part in asked for protocol in part.ruling.protocols)
        return replace(self._ruling(asked, stages, usage), protocols=protocols)

    def _ruling(self, asked: Sequence[_Part], stages: tuple[StageVerdict, ...], usage: tuple[StageUsage, ...]) -> Ruling:
        last = asked[-1].ruling
        if last.verdict is Verdict.EXCLUDED:
            return replace(last, stages=stages, usage=usage, error=f"{asked[-1].judge}: {last.error}")
        if last.reward is not None and self._is_decided_by(last.verdict):
            return scored(passed=last.verdict is Verdict.SUCCESS, stages=stages, usage=usage)
        if without := [part for part in asked if part.ruling.reward is None]:
            return _without_verdict(without, stages, usage)
        if self._composite.combine == "weighted":
            return self._weighted(asked, stages, usage)
        return scored(passed=last.verdict is Verdict.SUCCESS, stages=stages, usage=usage)

    def _weighted(self, asked: Sequence[_Part], stages: tuple[StageVerdict, ...], usage: tuple[StageUsage, ...]) -> Ruling:
        weights = self._composite.parts.values()
        total = sum(weights)
        parts = tuple(_share(part, weight / total) for part, weight in zip(asked, weights, strict=True))
        reward = sum(part.value for part in parts)
        passed = reward >= self._composite.threshold - _TOLERANCE
        verdict = Verdict.SUCCESS if passed else Verdict.FAILURE
        return Ruling(verdict=verdict, reward=reward, stages=stages, parts=parts, usage=usage)


async def _found(judge: Judge, episode: JudgedEpisode, known: dict[int, Ruling]) -> Ruling:
    if isinstance(judge, CompositeJudge):
        return await judge._judge(episode, known)
    if id(judge) not in known:
        ruling = await ask_once(judge, episode)
        known[id(judge)] = replace(ruling, usage=(), protocols=())
        return ruling
    return known[id(judge)]


def _without_verdict(without: Sequence[_Part], stages: tuple[StageVerdict, ...], usage: tuple[StageUsage, ...]) -> Ruling:
    reason = "; ".join(f"{part.judge}: {part.ruling.error}" for part in without)
    curable = any(part.ruling.curable for part in without)
    return undecided(reason, stages=stages, usage=usage, curable=curable)


def _named(part: _Part) -> tuple[StageVerdict, ...]:
    """Its stages under the judge's name; its verdict, where it has no stages."""
    if not part.ruling.stages and part.ruling.reward is not None:
        return (StageVerdict(part.judge, passed=part.ruling.verdict is Verdict.SUCCESS),)
    return tuple(msgspec.structs.replace(stage, stage=f"{part.judge}.{stage.stage}") for stage in part.ruling.stages)


def _share(part: _Part, share: float) -> RewardPart:
    assert part.ruling.reward is not None
    return RewardPart(part.judge, share * part.ruling.reward, tuple(share * earned for earned in part.ruling.step_rewards))
