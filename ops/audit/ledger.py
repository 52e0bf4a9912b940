"""Reads the streams of a run into a ledger, without screenshots and texts: enough to prove its promises, small enough for
any run."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import Enum

import anyio

from bus.codec import decode, encode
from bus.lineage import Lineage
from bus.ports import Bus, Record, StoredBytes
from bus.subjects import Subjects
from schemas.errors import MessageCorrupt
from schemas.ids import EpisodeId, GroupId, PolicyVersion
from schemas.messages import (
    AnyMessage,
    Checkpoint,
    EpisodeStart,
    Judgement,
    NetworkRecord,
    Observation,
    Split,
    StepRefusal,
    StepRequest,
    Task,
    Trajectory,
    Verdict,
)

_PAUSES_S = (0.05, 0.2, 0.5, 1.0)
"""How long a replica may lag behind before what it does not give counts as gone."""


class Kind(Enum):
    TASK = "task"
    START = "start"
    OBSERVATION = "obs"
    ANSWER = "act"
    REFUSAL = "refusal"
    """In the place of an answer."""
    NETWORK = "net"
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
    group: GroupId
    rubric: str
    verdict: Verdict
    reward: float | None
    finished: bool
    """Whether the episode was played to an end that can be judged."""
    trains: bool
    """Of a training episode."""
    demonstrates: bool
    """Played by an oracle."""
    digest: str
    """Of the trajectory inside it."""

    @property
    def score(self) -> float | None:
        """The reward, where somebody came to a verdict."""
        return self.reward if self.verdict in (Verdict.SUCCESS, Verdict.FAILURE) else None


@dataclass(frozen=True)
class Ledger:
    """Everything in the order of its stream."""

    chains: dict[EpisodeId, list[Link]] = field(default_factory=dict)
    published: list[Published] = field(default_factory=list)
    ruled: list[Ruled] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    """The run's versions, oldest first, as every reader takes them (`bus.lineage`)."""
    unsound: list[str] = field(default_factory=list)
    """Records that are gone, that nobody can read, or that are not what their subject says."""


async def read_ledger(bus: Bus, subjects: Subjects) -> Ledger:
    """Reads every stream from its beginning to where it ended when reading began.

    The ends are noted effect before cause, so that whatever is read refers to what is read too, also in a run that goes on.
    """
    shards = [subjects.episodes(shard) for shard in range(subjects.num_shards)]
    streams = (subjects.checkpoints, subjects.judged, subjects.trajectories, *shards)
    ends = {stream: await bus.last_seq(stream) for stream in streams}
    ledger, lineage = Ledger(), Lineage()
    announced, taken = list[Record](), dict[PolicyVersion, Checkpoint]()
    for stream, end in ends.items():
        async for stored in _stored(bus, stream, end, ledger):
            if stream in shards:
                link = _link(stored)
                ledger.chains.setdefault(EpisodeId(stored.subject.split(".")[3]), []).append(link)
            elif (version := _version(subjects, stored)) is not None:
                announced.append(version)
                if lineage.takes(version) and isinstance(version.message, Checkpoint):
                    taken[version.message.version] = version.message
            elif not _take_result(ledger, subjects, stored):
                ledger.unsound.append(f"record {stored.seq} of {stream} is not what its subject says")
    versions = [taken[version] for version in lineage.seqs]
    ledger.checkpoints.extend(versions)
    ledger.unsound.extend(
        f"record {record.seq} of {record.stream} is no version of the run"
        for record in announced
        if record.message not in versions
    )
    return ledger


async def _stored(bus: Bus, stream: str, end: int, ledger: Ledger) -> AsyncIterator[StoredBytes]:
    """Every record up to `end`. Sequences have no gaps, so one that is missing was there and is gone."""
    seq = 0
    while seq < end:
        page = await _page(bus, stream, seq)
        for stored in page:
            _note_gone(ledger, stream, seq + 1, min(stored.seq - 1, end))
            seq = stored.seq
            if seq > end:
                break
            yield stored
        if not page:
            _note_gone(ledger, stream, seq + 1, end)
            break


async def _page(bus: Bus, stream: str, after_seq: int) -> list[StoredBytes]:
    for pause_s in (0.0, *_PAUSES_S):
        await anyio.sleep(pause_s)
        if page := list(await bus.read_bytes(stream, ">", after_seq=after_seq)):
            return page
    return []


def _note_gone(ledger: Ledger, stream: str, first: int, last: int) -> None:
    if first <= last:
        which = f"record {first}" if first == last else f"records {first} to {last}"
        ledger.unsound.append(f"{which} of {stream} cannot be had any more")


def _decoded(stored: StoredBytes) -> AnyMessage | None:
    try:
        return decode(stored.data)
    except MessageCorrupt:
        return None


def _link(stored: StoredBytes) -> Link:
    message = _decoded(stored)
    if message is None:
        return Link(kind=None, seq=stored.seq, time_s=stored.time_s)
    return link_of(Record(stored.stream, stored.subject, stored.seq, message, stored.time_s))


def _version(subjects: Subjects, stored: StoredBytes) -> Record | None:
    message = _decoded(stored)
    if not isinstance(message, Checkpoint) or stored.subject != subjects.checkpoint(message.version):
        return None
    return Record(stored.stream, stored.subject, stored.seq, message, stored.time_s)


def _take_result(ledger: Ledger, subjects: Subjects, stored: StoredBytes) -> bool:
    """Whether the record is what its subject says; only then it counts."""
    match _decoded(stored):
        case Trajectory() as trajectory if stored.subject == subjects.trajectory(trajectory.task.split, trajectory.episode):
            ledger.published.append(_published(stored, trajectory))
        case Judgement() as judgement if _subjects_of(subjects, judgement) == {stored.subject}:
            ledger.ruled.append(_ruled(stored, judgement))
        case _:
            return False
    return True


def _subjects_of(subjects: Subjects, judgement: Judgement) -> set[str]:
    """By what it says itself, and by the trajectory inside it."""
    task, rubric = judgement.trajectory.task, judgement.rubric
    return {
        subjects.judgement(judgement.split, rubric, judgement.episode),
        subjects.judgement(task.split, rubric, task.episode),
    }


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
        case StepRefusal():
            said = [message.episode, str(message.attempt), "act", str(message.step)]
            place = Kind.REFUSAL, message.attempt, message.step
        case NetworkRecord():
            said = [message.episode, str(message.attempt), "net", "0"]
            place = Kind.NETWORK, message.attempt, 0
        case Trajectory():
            said = [message.episode, "done"]
            place = Kind.DONE, message.attempt, 0
        case _:
            return None, 0, 0
    return place if said == tokens else (None, 0, 0)


def _published(record: StoredBytes, trajectory: Trajectory) -> Published:
    return Published(episode=trajectory.episode, time_s=record.time_s, digest=digest_of(trajectory))


def _ruled(record: StoredBytes, judgement: Judgement) -> Ruled:
    trajectory = judgement.trajectory
    return Ruled(
        seq=record.seq,
        time_s=record.time_s,
        episode=judgement.episode,
        group=judgement.group,
        rubric=judgement.rubric,
        verdict=judgement.verdict,
        reward=judgement.reward,
        finished=trajectory.outcome.finished,
        trains=judgement.split is Split.TRAIN,
        demonstrates=trajectory.task.demonstrate,
        digest=digest_of(trajectory),
    )
