"""What the streams of a run hold, without pictures and texts: enough to prove its promises, small enough for any run."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import Enum

from bus.codec import encode
from bus.ports import Bus, Record
from bus.subjects import Subjects
from schemas.ids import EpisodeId
from schemas.messages import (
    Checkpoint,
    EpisodeStart,
    Judgement,
    Observation,
    Split,
    StepRequest,
    Task,
    Trajectory,
    Verdict,
)


class Kind(Enum):
    TASK = "task"
    START = "start"
    OBSERVATION = "obs"
    ANSWER = "act"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One record of a chain."""

    kind: Kind | None
    """None: a message that does not belong on this subject."""
    seq: int
    time_s: float
    """Unix seconds when the server stored it."""
    attempt: int = 0
    step: int = 0
    num_observations: int = 0
    """Of an end: what it says that its attempt holds."""
    num_steps: int = 0
    digest: str = ""
    """Of an end: of its bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One record of TRAJECTORIES."""

    episode: EpisodeId
    time_s: float
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruled:
    """One record of JUDGED."""

    seq: int
    time_s: float
    episode: EpisodeId
    rubric: str
    verdict: Verdict
    reward: float | None
    finished: bool
    """Whether the episode was played to an end that can be judged."""
    counts: bool
    """Whether a trainer consumes it: training, and no demonstration."""
    digest: str
    """Of the trajectory inside it."""


@dataclass(frozen=True)
class Ledger:
    """Everything in the order of its stream."""

    chains: dict[EpisodeId, list[Link]] = field(default_factory=dict)
    published: list[Published] = field(default_factory=list)
    ruled: list[Ruled] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)


async def read_ledger(bus: Bus, subjects: Subjects) -> Ledger:
    """Reads every stream from its beginning to where it ends now."""
    ledger = Ledger()
    for shard in range(subjects.num_shards):
        async for record in _stored(bus, subjects.episodes(shard), f"{subjects.run}.ep.{shard}.>"):
            episode = EpisodeId(record.subject.split(".")[3])
            ledger.chains.setdefault(episode, []).append(link_of(record))
    async for record in _stored(bus, subjects.trajectories, subjects.everything("trajectory")):
        if isinstance(record.message, Trajectory):
            ledger.published.append(_published(record, record.message))
    async for record in _stored(bus, subjects.judged, subjects.judgements(None)):
        if isinstance(record.message, Judgement):
            ledger.ruled.append(_ruled(record, record.message))
    async for record in _stored(bus, subjects.checkpoints, subjects.everything("checkpoint")):
        if isinstance(record.message, Checkpoint):
            ledger.checkpoints.append(record.message)
    return ledger


async def _stored(bus: Bus, stream: str, subject_filter: str) -> AsyncIterator[Record]:
    newest = await bus.last(stream, subject_filter)
    if newest is None:
        return
    async with bus.tail(stream, subject_filter) as records:
        async for record in records:
            yield record
            if record.seq >= newest.seq:
                return


def digest_of(trajectory: Trajectory) -> str:
    return hashlib.blake2b(encode(trajectory), digest_size=8).hexdigest()


def link_of(record: Record) -> Link:
    """What a chain's record says of itself; its subject must say the same."""
    kind, attempt, step = _place(record)
    message = record.message
    ends: dict[str, int | str] = {}
    if kind is Kind.DONE and isinstance(message, Trajectory):
        ends = {
            "num_observations": message.num_observations,
            "num_steps": message.num_steps,
            "digest": digest_of(message),
        }
    return Link(kind=kind, seq=record.seq, time_s=record.time_s, attempt=attempt, step=step, **ends)  # type: ignore[arg-type]


def _place(record: Record) -> tuple[Kind | None, int, int]:
    tokens = record.subject.split(".")[3:]
    message = record.message
    match message:
        case Task():
            said: list[str] = [message.episode, "task"]
            place = Kind.TASK, 0, 0
        case EpisodeStart():
            said = [message.episode, str(message.attempt), "start", "0"]
            place = Kind.START, message.attempt, 0
        case Observation():
            said = [message.episode, str(message.attempt), "obs", str(message.step)]
            place = Kind.OBSERVATION, message.attempt, message.step
        case StepRequest():
            said = [message.episode, str(message.attempt), "act", str(message.step)]
            place = Kind.ANSWER, message.attempt, message.step
        case Trajectory():
            said = [message.episode, "done"]
            place = Kind.DONE, message.attempt, 0
        case _:
            return None, 0, 0
    return place if said == tokens else (None, 0, 0)


def _published(record: Record, trajectory: Trajectory) -> Published:
    return Published(episode=trajectory.episode, time_s=record.time_s, digest=digest_of(trajectory))


def _ruled(record: Record, judgement: Judgement) -> Ruled:
    trajectory = judgement.trajectory
    return Ruled(
        seq=record.seq,
        time_s=record.time_s,
        episode=judgement.episode,
        rubric=judgement.rubric,
        verdict=judgement.verdict,
        reward=judgement.reward,
        finished=trajectory.outcome.finished,
        counts=judgement.split is Split.TRAIN and not trajectory.task.demonstrate,
        digest=digest_of(trajectory),
    )
