"""Adds up what judges said and took, by rubric, and where two rubrics differ."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations

from judges.spending import Spending, spending_of
from ops.analysis.report.episode import ReportedEpisode
from ops.statistics.shares import Share
from ops.statistics.spread import Values
from schemas.messages import Judgement, StageUsage
from trainer.scores import score


@dataclass(slots=True)
class Stage:
    """One stage of a rubric over all judgements that came to it."""

    num_passed: int = 0
    num_failed: int = 0
    num_voted: int = 0
    agreement_sum: float = 0.0

    @property
    def passed(self) -> Share:
        return Share(self.num_passed, self.num_passed + self.num_failed)

    @property
    def vote_agreement(self) -> float | None:
        """Mean over the judgements that were voted on."""
        return self.agreement_sum / self.num_voted if self.num_voted else None


@dataclass(slots=True)
class Rubric:
    verdicts: Counter[str] = field(default_factory=Counter)
    num_blocked: int = 0
    spending: Spending = Spending()
    seconds: Values = field(default_factory=Values)
    stages: dict[str, Stage] = field(default_factory=dict)
    usage: dict[tuple[str, str], StageUsage] = field(default_factory=dict)
    """By kind of question and model."""

    def add(self, judgement: Judgement) -> None:
        self.verdicts[judgement.verdict.value] += 1
        self.num_blocked += judgement.blocked
        self.spending += spending_of(judgement)
        self.seconds.add(judgement.judged_s)
        for verdict in judgement.stages:
            stage = self.stages.setdefault(verdict.stage, Stage())
            stage.num_passed += verdict.passed
            stage.num_failed += not verdict.passed
            if verdict.votes:
                stage.num_voted += 1
                stage.agreement_sum += verdict.agreement
        for usage in judgement.usage:
            known = self.usage.get((usage.stage, usage.model))
            self.usage[usage.stage, usage.model] = _sum(known, usage) if known else usage


def _sum(one: StageUsage, other: StageUsage) -> StageUsage:
    added = ("num_calls", "num_failures", "prompt_tokens", "cached_tokens", "completion_tokens", "cost", "seconds")
    sums = {name: getattr(one, name) + getattr(other, name) for name in added}
    return StageUsage(stage=one.stage, model=one.model, **sums)


@dataclass(slots=True)
class Pair:
    """Two rubrics on the episodes to which both gave a verdict."""

    num_compared: int = 0
    num_differing: int = 0

    @property
    def disagreement(self) -> Share:
        return Share(self.num_differing, self.num_compared)


@dataclass(slots=True)
class Judging:
    rubrics: dict[str, Rubric] = field(default_factory=dict)
    pairs: dict[tuple[str, str], Pair] = field(default_factory=dict)
    by_judge: Counter[str] = field(default_factory=Counter)
    """Judgements by judge worker."""

    def add(self, one: ReportedEpisode) -> None:
        scores = {}
        for judgement in one.judgements:
            self.rubrics.setdefault(judgement.rubric, Rubric()).add(judgement)
            self.by_judge[judgement.judge] += 1
            if (scored := score(judgement)) is not None:
                scores[judgement.rubric] = scored.success
        for first, second in combinations(sorted(scores), 2):
            pair = self.pairs.setdefault((first, second), Pair())
            pair.num_compared += 1
            pair.num_differing += scores[first] != scores[second]
