"""An episode as a whole: who took it, how it ended."""

import enum

from schemas.ids import EpisodeId, WorkerId
from schemas.messages.network import NetworkSummary
from schemas.messages.structs import Message, RecordRef, Struct
from schemas.messages.task import Task
from schemas.ranges import Amount, Attempt, Count, Episode, Moment, Real, StepCount, Version, Worker


class EpisodeStart(Message, frozen=True, tag="start/1"):
    """A browser worker took the episode; appending this fences whoever held it before."""

    episode: Episode
    attempt: Attempt
    worker: Worker
    draw: str = ""
    """Differs every time that anybody takes an episode: of two slots of one worker each knows its own record."""


class Outcome(enum.Enum):
    """How an episode ended."""

    ANSWERED = "answered"
    """The policy gave an answer."""
    DONE = "done"
    """The environment itself declared the episode over."""
    STEP_LIMIT = "step_limit"
    UNREADABLE = "unreadable"
    """The policy gave `Task.max_unparsed` answers in a row that could not be parsed."""
    TIMED_OUT = "timed_out"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def finished(self) -> bool:
        """Whether the policy played to an end that can be scored."""
        return self in (Outcome.ANSWERED, Outcome.DONE, Outcome.STEP_LIMIT, Outcome.UNREADABLE)


class FinalState(Struct, frozen=True):
    """The active page when its episode ended: what checks are compared with."""

    url: str
    title: str
    values: tuple[str, ...] = ()
    """Of the task's page checks, in order; empty where the expression failed."""


class Timings(Struct, frozen=True):
    """Seconds an episode spent in each phase."""

    reset_s: Amount = 0.0
    observe_s: Amount = 0.0
    policy_s: Amount = 0.0
    act_s: Amount = 0.0
    total_s: Amount = 0.0
    waited_s: Amount = 0.0
    """For turns at a site, and for the hook of a block: in none of the phases, and not in the task's time."""


class Blockage(Struct, frozen=True):
    """A page that kept the agent out of a site, as its browser worker recognised it."""

    site: str
    """Host without `www.`."""
    sign: str
    """What it was recognised by, in words."""
    provider: str
    """Who guards the site, as in `cloudflare`; `site`: it does so itself."""
    status: Count = 0
    """HTTP status of the document; 0: it has none."""
    retry_after_s: Amount = 0.0
    """Seconds after which the site may be asked again, as it said; 0: it said nothing."""
    egress: str = ""
    """As `Trajectory.egress`, of the attempt that met it."""
    attempt: Attempt = 0
    step: StepCount = 0
    """Answers that had been carried out."""
    elsewhere: bool = False
    """It guards another site than the one that the episode began on: the policy was told, and went on."""
    lifted: bool = False
    """The run's hook said that the page lets its visitor in by now, and the episode went on."""


class Trajectory(Message, frozen=True, tag="trajectory/1"):
    """How an episode ended. Stored twice, equal byte for byte: as the chain's `done` record and on TRAJECTORIES."""

    task: Task
    attempt: Attempt
    outcome: Outcome
    num_observations: StepCount = 0
    num_steps: StepCount = 0
    """Steps that were answered; there may be one more observation."""
    answer: str = ""
    environment_reward: Real | None = None
    error: str = ""
    navigation_error: str = ""
    """Why the first page could not be opened."""
    final_state: FinalState | None = None
    """Of tasks with checks, unless there was no page any more."""
    worker: Worker = WorkerId("")
    num_unparsed: StepCount = 0
    num_unparsed_last: StepCount = 0
    """Of these, those behind the last one that could be parsed."""
    thinking_ended_last: bool = True
    """`thinking_ended` of the last answer."""
    versions: tuple[Version, ...] = ()
    """Oldest policy version of each step."""
    timings: Timings = Timings()
    ended_at: Moment = 0.0
    """Unix seconds."""
    environment_step_rewards: tuple[Real, ...] = ()
    """What the environment's reward rose by at each step; empty when it did so at the last step alone."""
    environment_success: bool | None = None
    """Whether the environment took the task for solved; None: it did with a reward of 1."""
    network: NetworkSummary | None = None
    """Of the record of its traffic, which stands in the chain ahead of this; None: none was made."""
    egress: str = ""
    """The proxy by which its pages reached public addresses, as in `http://proxy.example:3128`; empty: none."""
    blockages: tuple[Blockage, ...] = ()
    """Of this attempt and, where they were given up over one by the same worker, of those before it."""

    def contradiction(self) -> str:
        if not self.num_steps <= self.num_observations <= self.num_steps + 1:
            return f"num_steps {self.num_steps} with num_observations {self.num_observations}"
        if self.num_steps > self.task.max_steps:
            return f"num_steps {self.num_steps} where the task allows {self.task.max_steps}"
        if self.num_unparsed_last > self.num_unparsed:
            return f"num_unparsed {self.num_unparsed} with num_unparsed_last {self.num_unparsed_last}"
        if len(self.environment_step_rewards) > self.num_steps:
            return f"num_steps {self.num_steps} with {len(self.environment_step_rewards)} environment_step_rewards"
        if self.num_unparsed > self.num_steps or len(self.versions) > self.num_steps:
            return f"num_steps {self.num_steps} with num_unparsed {self.num_unparsed} and {len(self.versions)} versions"
        return ""

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

    episodes: tuple[Episode, ...]
    reason: str
