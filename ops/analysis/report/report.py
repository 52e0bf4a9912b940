"""Everything that a report says, gathered in one pass. No record is kept: only counts by label, and a number per value."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Protocol

from ops.analysis.evaluation.identity import Identity
from ops.analysis.report.causes import Causes
from ops.analysis.report.episode import ReportedEpisode, reported
from ops.analysis.report.judging import Judging
from ops.analysis.report.limits import StepLimits
from ops.analysis.report.repetition import Repetition
from ops.analysis.report.seen import Seen
from ops.analysis.report.selection import Selection, ended_at
from ops.analysis.report.staleness import Staleness, Workers
from ops.analysis.report.success import Success
from ops.analysis.report.usage import Usage
from ops.archive.episodes import StoredEpisode
from ops.statistics.blocking import Blocking
from trainer.tracking import Row


class _Part(Protocol):
    def add(self, one: ReportedEpisode) -> None: ...


@dataclass(kw_only=True)
class Report:
    """Of one run or archive."""

    source: str
    run: str
    rubric: str
    """Whose verdicts count."""
    evaluation: Identity | None = None
    """What the run evaluates, and by which protocol, where it is one that does."""
    selection: Selection = Selection()
    num_episodes: int = 0
    num_left_out: int = 0
    """By the selection."""
    num_not_whole: int = 0
    """Episodes with steps that are not all stored any more."""
    first_s: float | None = None
    """Unix seconds at which the first of them ended."""
    last_s: float | None = None
    success: Success = field(default_factory=Success)
    seen: Seen = field(default_factory=Seen)
    usage: Usage = field(default_factory=Usage)
    causes: Causes = field(default_factory=Causes)
    blocking: Blocking = field(default_factory=Blocking)
    judging: Judging = field(default_factory=Judging)
    limits: StepLimits = field(default_factory=StepLimits)
    repetition: Repetition = field(default_factory=Repetition)
    staleness: Staleness = field(default_factory=Staleness)
    workers: Workers = field(default_factory=Workers)
    training: tuple[Row, ...] = ()
    """What the trainer wrote of every version, where its file is at hand."""

    def add(self, stored: StoredEpisode) -> None:
        self.seen.note(stored.trajectory.task)
        if not self.selection.takes(stored):
            self.num_left_out += 1
            return
        ended_s = ended_at(stored)
        self.first_s = min(ended_s, self.first_s or ended_s)
        self.last_s = max(ended_s, self.last_s or ended_s)
        self.add_reported(reported(stored, self.rubric))

    def add_reported(self, one: ReportedEpisode) -> None:
        self.num_episodes += 1
        self.num_not_whole += one.trajectory.num_steps > 0 and not one.is_whole
        self.blocking.add(one.trajectory, ruled_blocked=one.judgement is not None and one.judgement.blocked)
        for part in self._parts:
            part.add(one)

    @property
    def _parts(self) -> "tuple[_Part, ...]":
        counted = (self.success, self.seen, self.usage, self.causes, self.judging)
        return (*counted, self.limits, self.repetition, self.staleness, self.workers)


async def gather(
    report: Report, episodes: AsyncIterator[StoredEpisode], progress: Callable[[int], None] = lambda _: None
) -> Report:
    """Adds every episode; `progress` hears how many were read."""
    async for episode in episodes:
        report.add(episode)
        progress(report.num_episodes + report.num_left_out)
    return report
