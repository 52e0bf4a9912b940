"""An episode as a whole: who took it, how it ended."""

import enum

from schemas.ids import EpisodeId, PolicyVersion, WorkerId
from schemas.messages.structs import Message, RecordRef, Struct
from schemas.messages.task import Task


class EpisodeStart(Message, frozen=True, tag="start/1"):
    """A browser worker took the episode; appending this fences whoever held it before."""

    episode: EpisodeId
    attempt: int
    worker: WorkerId
    draw: str = ""
    """Differs every time that anybody takes an episode: of two slots of one worker each knows its own record."""


class Outcome(enum.Enum):
    """How an episode ended."""

    ANSWERED = "answered"
    """The policy gave an answer."""
    DONE = "done"
    """The environment itself declared the episode over."""
    STEP_LIMIT = "step_limit"
    TIMED_OUT = "timed_out"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def finished(self) -> bool:
        """Whether the policy played to an end that a judge can score."""
        return self in (Outcome.ANSWERED, Outcome.DONE, Outcome.STEP_LIMIT)


class FinalState(Struct, frozen=True):
    """The active page when its episode ended: what checks are compared with."""

    url: str
    title: str
    values: tuple[str, ...] = ()
    """Of the task's page checks, in order; empty where the expression failed."""


class Timings(Struct, frozen=True):
    """Seconds an episode spent in each phase."""

    reset_s: float = 0.0
    observe_s: float = 0.0
    policy_s: float = 0.0
    act_s: float = 0.0
    total_s: float = 0.0


class Trajectory(Message, frozen=True, tag="trajectory/1"):
    """How an episode ended. Stored twice, equal byte for byte: as the chain's `done` record and on TRAJECTORIES."""

    task: Task
    attempt: int
    outcome: Outcome
    num_observations: int = 0
    num_steps: int = 0
    """Steps that were answered; there may be one more observation."""
    answer: str = ""
    environment_reward: float | None = None
    error: str = ""
    navigation_error: str = ""
    """Why the first page could not be opened."""
    final_state: FinalState | None = None
    """Of tasks with checks, unless there was no page any more."""
    worker: WorkerId = WorkerId("")
    num_unparsed: int = 0
    versions: tuple[PolicyVersion, ...] = ()
    """Oldest policy version of each step."""
    timings: Timings = Timings()
    ended_at: float = 0.0
    """Unix seconds."""

    @property
    def episode(self) -> EpisodeId:
        return self.task.episode

    @property
    def observations(self) -> tuple[RecordRef, ...]:
        return tuple(RecordRef(self.episode, self.attempt, "obs", step) for step in range(self.num_observations))

    @property
    def steps(self) -> tuple[RecordRef, ...]:
        """The answers."""
        return tuple(RecordRef(self.episode, self.attempt, "act", step) for step in range(self.num_steps))


class EpisodeCancel(Message, frozen=True, tag="cancel/1"):
    """Ask whoever runs these episodes to end them as cancelled."""

    episodes: tuple[EpisodeId, ...]
    reason: str
