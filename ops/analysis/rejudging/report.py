"""Reports on judging again: every trajectory by the old rubric and by the new one, and what it took."""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass

from bus.backlog import backlog
from bus.ports import Bus
from bus.subjects import Subjects
from judges.spending import Spending, spending_of
from schemas.ids import EpisodeId
from schemas.messages import Judgement, Verdict

UNJUDGED = "unjudged"


@dataclass(frozen=True, kw_only=True)
class Rejudged:
    """`confusion` counts episodes by the verdict of `against`, then by that of `rubric`."""

    rubric: str
    against: str
    """The rubric that the run is trained by; empty: it is the same."""
    num_episodes: int
    verdicts: dict[str, int]
    confusion: dict[str, dict[str, int]]
    unjudged: tuple[EpisodeId, ...]
    """Episodes without a judgement by `rubric`."""
    spending: Spending
    """Of all judgements by `rubric`, those of earlier times included."""
    elapsed_s: float
    """Of this process."""


async def read_report(
    bus: Bus, subjects: Subjects, *, rubric: str, against: str, episodes: Collection[EpisodeId], elapsed_s: float
) -> Rejudged:
    """Reads every judgement by both rubrics; `episodes` are those that had ended."""
    spending = Spending()
    given: dict[EpisodeId, Verdict] = {}
    async for judgement in _judgements(bus, subjects, rubric):
        given[judgement.episode] = judgement.verdict
        spending += spending_of(judgement)
    before = {one.episode: one.verdict async for one in _judgements(bus, subjects, against)} if against else {}
    verdicts = Counter(_word(given, episode) for episode in episodes)
    pairs = Counter((_word(before, episode), _word(given, episode)) for episode in episodes) if against else Counter()
    return Rejudged(
        rubric=rubric,
        against=against,
        num_episodes=len(episodes),
        verdicts=dict(verdicts),
        confusion={old: {new: num for (one, new), num in pairs.items() if one == old} for old, _ in pairs},
        unjudged=tuple(sorted(set(episodes) - given.keys())),
        spending=spending,
        elapsed_s=elapsed_s,
    )


def _word(verdicts: Mapping[EpisodeId, Verdict], episode: EpisodeId) -> str:
    return verdicts[episode].value if episode in verdicts else UNJUDGED


async def ended_episodes(bus: Bus, subjects: Subjects) -> frozenset[EpisodeId]:
    """Those that TRAJECTORIES holds."""
    stored = await bus.subjects(subjects.trajectories, subjects.everything("trajectory"))
    return frozenset(EpisodeId(subject.split(".")[3]) for subject in stored)


async def _judgements(bus: Bus, subjects: Subjects, rubric: str) -> AsyncIterator[Judgement]:
    """By direct reads: a judge's key may not follow JUDGED."""
    async for record in backlog(bus, subjects.judged, subjects.judgements_by(rubric)):
        if isinstance(record.message, Judgement):
            yield record.message
