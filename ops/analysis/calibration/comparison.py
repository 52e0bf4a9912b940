"""A judge's verdicts beside the truth they are compared with: what agrees, what does not, and what cannot be compared.

Policy: only a verdict of success is a success. An excluded episode counts as no success; an error is no verdict at all, so it
is left out of every share and counted apart, as are episodes that nobody labelled or judged.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from judges.spending import Spending, spent
from ops.analysis.calibration.statistics import Confusion
from ops.statistics.shares import Share
from schemas.ids import EpisodeId
from schemas.messages import Judgement, StageVerdict, Verdict

UNLABELLED = "unlabelled"
UNJUDGED = "unjudged"
_NO_TRUTH = frozenset((Verdict.ERROR.value, UNJUDGED, UNLABELLED))


@dataclass(frozen=True, slots=True)
class Truth:
    """What a judgement is compared with: a label, or another rubric's verdict."""

    word: str
    """`success`, `failure`, `excluded`, `error`, `unjudged` or `unlabelled`."""
    note: str = ""

    @property
    def is_success(self) -> bool | None:
        """None: it says nothing."""
        return None if self.word in _NO_TRUTH else self.word == Verdict.SUCCESS.value

    @classmethod
    def labelled(cls, success: bool | None, note: str = "") -> "Truth":
        word = UNLABELLED if success is None else Verdict.SUCCESS.value if success else Verdict.FAILURE.value
        return cls(word, note)

    @classmethod
    def judged(cls, judgement: Judgement | None) -> "Truth":
        return cls(judgement.verdict.value, _reason(judgement)) if judgement else cls(UNJUDGED)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One episode with a truth, a judgement, or both."""

    episode: EpisodeId
    truth: Truth
    judgement: Judgement | None

    @property
    def verdict(self) -> str:
        return self.judgement.verdict.value if self.judgement else UNJUDGED

    @property
    def pair(self) -> tuple[bool, bool] | None:
        """Truth and verdict, where there are both."""
        truth = self.truth.is_success
        if truth is None or self.judgement is None or self.judgement.verdict is Verdict.ERROR:
            return None
        return truth, self.judgement.verdict is Verdict.SUCCESS


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """An episode on which verdict and truth differ, and why the judge ruled so."""

    episode: EpisodeId
    task: str
    """The instruction."""
    answer: str
    truth: str
    note: str
    """Of the label, or why the other rubric ruled so."""
    verdict: str
    reason: str
    """The deciding stage with its reasoning."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything that is known about one judge against one truth."""

    truths: dict[str, int]
    verdicts: dict[str, int]
    matrix: dict[str, dict[str, int]]
    """Episodes by truth, then by verdict; also those that no share counts."""
    confusion: Confusion
    by_difficulty: dict[int, Share]
    """Agreement by the task's difficulty."""
    vote_agreement: float | None
    """Mean over all stages that were voted on; None: there was no vote."""
    spending: Spending
    disagreements: tuple[Disagreement, ...]


def compare(truths: Mapping[EpisodeId, Truth], judgements: Mapping[EpisodeId, Judgement]) -> Comparison:
    """`truths` holds every known episode; those without a judgement are counted as such."""
    every = [Compared(episode=episode, truth=truth, judgement=judgements.get(episode)) for episode, truth in truths.items()]
    matrix: dict[str, dict[str, int]] = {}
    for (truth, verdict), count in Counter((one.truth.word, one.verdict) for one in every).items():
        matrix.setdefault(truth, {})[verdict] = count
    ruled = [one.judgement for one in every if one.judgement is not None]
    return Comparison(
        truths=dict(Counter(one.truth.word for one in every)),
        verdicts=dict(Counter(one.verdict for one in every)),
        matrix=matrix,
        confusion=Confusion.of(one.pair for one in every if one.pair is not None),
        by_difficulty=_by_difficulty(every),
        vote_agreement=_vote_agreement(ruled),
        spending=spent(ruled),
        disagreements=tuple(
            _disagreement(one, one.judgement)
            for one in every
            if one.judgement is not None and one.pair is not None and one.pair[0] != one.pair[1]
        ),
    )


def deciding(judgement: Judgement) -> StageVerdict | None:
    """The stage that the verdict rests on: the last that was not passed, or of a success the last."""
    if judgement.verdict is Verdict.SUCCESS:
        return next(reversed(judgement.stages), None)
    return next((stage for stage in reversed(judgement.stages) if not stage.passed), None)


def _by_difficulty(every: Iterable[Compared]) -> dict[int, Share]:
    pairs = sorted(
        (one.judgement.trajectory.task.difficulty, one.pair[0] == one.pair[1])
        for one in every
        if one.judgement is not None and one.pair is not None
    )
    agreed = {level: [agrees for _, agrees in group] for level, group in groupby(pairs, key=lambda pair: pair[0])}
    return {level: Share(sum(same), len(same)) for level, same in agreed.items()}


def _vote_agreement(judgements: Iterable[Judgement]) -> float | None:
    voted = [stage.agreement for judgement in judgements for stage in judgement.stages if stage.votes]
    return sum(voted) / len(voted) if voted else None


def _disagreement(one: Compared, judgement: Judgement) -> Disagreement:
    trajectory = judgement.trajectory
    return Disagreement(
        episode=one.episode,
        task=trajectory.task.instruction,
        answer=trajectory.answer,
        truth=one.truth.word,
        note=one.truth.note,
        verdict=one.verdict,
        reason=_reason(judgement),
    )


def _reason(judgement: Judgement) -> str:
    stage = deciding(judgement)
    said = f"{stage.stage}: {stage.reasoning}" if stage and stage.reasoning else stage.stage if stage else ""
    return judgement.error or said
