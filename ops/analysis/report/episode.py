"""One episode as every figure of a report takes it."""

from dataclasses import dataclass

from ops.analysis.report.labels import kind_of
from ops.archive.episodes import StoredEpisode
from ops.archive.exports.played import PlayedStep, played
from schemas.messages import Judgement, Observation, Task, Trajectory
from trainer.scores import Score, score


@dataclass(frozen=True, slots=True)
class ReportedEpisode:
    trajectory: Trajectory
    judgement: Judgement | None
    """By the rubric that counts."""
    judgements: tuple[Judgement, ...] = ()
    """By every rubric."""
    steps: tuple[PlayedStep, ...] = ()
    last_seen: Observation | None = None
    """What the last action led to, where it was looked at."""

    @property
    def task(self) -> Task:
        return self.trajectory.task

    @property
    def kind(self) -> str:
        return kind_of(self.task)

    @property
    def score(self) -> Score | None:
        """None: nobody came to a verdict."""
        return score(self.judgement) if self.judgement else None

    @property
    def is_whole(self) -> bool:
        """Whether every step is still there: else it has no tokens and no visits to count."""
        return 0 < self.trajectory.num_steps == len(self.steps)


def reported(stored: StoredEpisode, rubric: str) -> ReportedEpisode:
    judgements = tuple(judgement.message for judgement in stored.judgements)
    effective = next((judgement for judgement in judgements if judgement.rubric == rubric), None)
    chain = played(stored, effective)
    return ReportedEpisode(stored.trajectory, effective, judgements, chain.steps, chain.last_seen)
