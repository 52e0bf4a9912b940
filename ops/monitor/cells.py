"""The live episodes, a cell each: folded from small messages, or set from what the streams say of a chain. Pure.

Invariant: a cell only goes forward (attempt, step, phase), so that messages may be late, doubled or missing.
"""

import enum
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ops.monitor.chains import ChainState
from schemas.ids import EpisodeId, PolicyVersion, TaskId, WorkerId
from schemas.messages import AnyMessage, EpisodeStart, Judgement, Outcome, Split, StepPhase, Task, Trajectory, Verdict
from schemas.site import site_of


class Phase(enum.Enum):
    """In the order of an episode's life, but for deciding and acting, which alternate."""

    QUEUED = "queued"
    OPENING = "opening"
    """A browser worker has it; there is no observation yet."""
    DECIDING = "deciding"
    """An observation waits for the policy."""
    ACTING = "acting"
    """An action is carried out, and the page observed."""
    JUDGING = "judging"
    """It has ended and waits for its judgement."""
    ENDED = "ended"


_RANK = {phase: rank for rank, phase in enumerate(Phase)}
PLAYED = (Phase.OPENING, Phase.DECIDING, Phase.ACTING)
"""A browser worker has it."""
LIVE = (Phase.QUEUED, *PLAYED)
"""Its task is on TASKS."""


@dataclass(slots=True)
class Cell:
    episode: EpisodeId
    since: float
    """When this phase began, or was first seen."""
    admitted_at: float
    phase: Phase = Phase.QUEUED
    task: TaskId = TaskId("")
    """Empty: not read yet."""
    split: Split = Split.TRAIN
    site: str = ""
    max_steps: int = 0
    version: PolicyVersion = PolicyVersion(0)
    """Newest when it was admitted."""
    attempt: int = 0
    step: int = 0
    worker: WorkerId = WorkerId("")
    policy: WorkerId = WorkerId("")
    outcome: Outcome | None = None
    verdict: Verdict | None = None
    reward: float | None = None
    revision: int = 0
    """Of `Cells` when it last changed."""
    checked_at: float = 0.0
    """When it was last compared with the streams."""


@dataclass
class Cells:
    """At most `capacity` of them; `num_unkept` counts what did not fit."""

    keep_s: float
    """An ended one is kept so long."""
    capacity: int
    by_episode: dict[EpisodeId, Cell] = field(default_factory=dict)
    revision: int = 0
    """Counts changes."""
    num_unkept: int = 0

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.by_episode.values())

    def __len__(self) -> int:
        return len(self.by_episode)

    def counts(self) -> dict[Phase, int]:
        found = Counter(cell.phase for cell in self)
        return {phase: found[phase] for phase in Phase}

    def apply(self, message: AnyMessage, now: float) -> None:
        match message:
            case Task():
                self._admitted(message, now)
            case EpisodeStart():
                cell = self._cell(message.episode, now)
                if cell is not None and message.attempt > cell.attempt and cell.phase in LIVE:
                    cell.attempt, cell.step, cell.worker = message.attempt, 0, message.worker
                    self._enter(cell, Phase.OPENING, now)
            case StepPhase():
                self._stepped(message, now)
            case Trajectory():
                self.ended(message, now)
            case Judgement():
                self._judged(message, now)
            case _:
                pass

    def place(self, episode: EpisodeId, state: ChainState, now: float) -> None:
        """What the streams say, where messages were missed."""
        if state.is_done or not state.attempt:
            return
        if not state.num_observations:
            phase, step = Phase.OPENING, 0
        elif state.num_observations > state.num_answers:
            phase, step = Phase.DECIDING, state.num_observations - 1
        else:
            phase, step = Phase.ACTING, state.num_answers - 1
        cell = self._cell(episode, now)
        if cell is not None:
            self._forward(cell, state.attempt, step, phase, now)

    def describe(self, task: Task, now: float, *, admitted_at: float) -> None:
        """What its task says, for an episode that was admitted unheard."""
        self._admitted(task, now)
        if (cell := self.by_episode.get(task.episode)) is not None:
            cell.admitted_at = admitted_at

    def took(self, start: EpisodeStart) -> None:
        """Who plays this attempt, as the chain says."""
        cell = self.by_episode.get(start.episode)
        if cell is not None and start.attempt == cell.attempt and start.worker != cell.worker:
            cell.worker = start.worker
            self._touch(cell)

    def ended(self, trajectory: Trajectory, now: float) -> None:
        cell = self._cell(trajectory.episode, now)
        if cell is None:
            return
        if not cell.task:
            self._describe(cell, trajectory.task)
        if cell.phase in LIVE:
            cell.attempt, cell.outcome = trajectory.attempt, trajectory.outcome
            cell.step = max(0, trajectory.num_steps - 1)
            cell.worker = trajectory.worker
            self._enter(cell, Phase.JUDGING, now)

    def _judged(self, judgement: Judgement, now: float) -> None:
        # A monitor that has just joined reads the judgements of the whole run: only live episodes are shown.
        cell = self.by_episode.get(judgement.episode)
        if cell is None or cell.phase is Phase.ENDED:
            return
        self.ended(judgement.trajectory, now)
        cell.outcome = judgement.trajectory.outcome
        cell.verdict, cell.reward = judgement.verdict, judgement.reward
        self._enter(cell, Phase.ENDED, now)

    def drop(self, episode: EpisodeId) -> None:
        if self.by_episode.pop(episode, None) is not None:
            self.revision += 1

    def expire(self, now: float) -> None:
        """Lets ended episodes go, in time or for want of room; then the longest judged."""
        for cell in [cell for cell in self if cell.phase is Phase.ENDED and now - cell.since > self.keep_s]:
            self.drop(cell.episode)
        excess = len(self) - self.capacity
        if excess > 0:
            done = [cell for cell in self if cell.phase not in LIVE]
            done.sort(key=lambda cell: (cell.phase is not Phase.ENDED, cell.since))
            for cell in done[:excess]:
                self.drop(cell.episode)

    def _admitted(self, task: Task, now: float) -> None:
        cell = self._cell(task.episode, now)
        if cell is not None and not cell.task:
            self._describe(cell, task)

    def _describe(self, cell: Cell, task: Task) -> None:
        cell.task, cell.split, cell.site = task.task, task.split, site_of(task.website)
        cell.max_steps, cell.version = task.max_steps, task.policy_version
        self._touch(cell)

    def _stepped(self, told: StepPhase, now: float) -> None:
        cell = self._cell(told.episode, now)
        if cell is None:
            return
        if self._forward(cell, told.attempt, told.step, Phase(told.phase), now):
            cell.worker = told.worker
            cell.policy = told.policy or cell.policy

    def _forward(self, cell: Cell, attempt: int, step: int, phase: Phase, now: float) -> bool:
        """Whether that is further than it was known to be."""
        present = (cell.attempt, cell.step, _RANK[cell.phase])
        if cell.phase not in LIVE or (attempt, step, _RANK[phase]) <= present:
            return False
        cell.attempt, cell.step = attempt, step
        self._enter(cell, phase, now)
        return True

    def _cell(self, episode: EpisodeId, now: float) -> Cell | None:
        """A new one for an unknown episode, as long as there is room."""
        cell = self.by_episode.get(episode)
        if cell is None:
            if len(self) >= self.capacity:
                self.expire(now)
            if len(self) >= self.capacity:
                self.num_unkept += 1
                return None
            cell = self.by_episode[episode] = Cell(episode=episode, since=now, admitted_at=now)
            self._touch(cell)
        return cell

    def _enter(self, cell: Cell, phase: Phase, now: float) -> None:
        cell.phase, cell.since = phase, now
        self._touch(cell)

    def _touch(self, cell: Cell) -> None:
        self.revision += 1
        cell.revision = self.revision


def by_attention(cells: Mapping[EpisodeId, Cell]) -> list[Cell]:
    """Those that are played first, each phase's longest first: a stuck one is seen."""
    order = {Phase.DECIDING: 0, Phase.ACTING: 0, Phase.OPENING: 0, Phase.JUDGING: 1, Phase.ENDED: 2, Phase.QUEUED: 3}
    return sorted(cells.values(), key=lambda cell: (order[cell.phase], cell.since))
