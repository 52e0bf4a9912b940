"""Records that are valid by their form and wrong in their content, for every stream, with a key that may write each."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from bus.access import Access
from bus.subjects import Subjects
from schemas.ids import EpisodeId, PolicyVersion, RunName, WorkerId
from schemas.messages import (
    AnyMessage,
    Checkpoint,
    DeadLetter,
    EpisodeStart,
    Heartbeat,
    JudgeCall,
    Judgement,
    Observation,
    Outcome,
    Position,
    Role,
    SiteBlock,
    Split,
    StepRequest,
    StepWake,
    Task,
    Trajectory,
    WeightChunk,
)
from tests.fixtures.write_messages import EXAMPLES

WRONG_NUMBERS: tuple[object, ...] = (-1, 2**31, 2**40, 2**63, math.nan, math.inf, -math.inf, 1e300, -(2**40))
_WRONG_TEXTS = ("", "a.b", "*", ">", "x" * 500, "a b", "../..", "\n")
_UNWRITTEN = "-0badf00d"
_raw = msgspec.msgpack.Decoder()
M = TypeVar("M")


@dataclass(frozen=True)
class Poison:
    """One forged record."""

    key: Access
    stream: str
    subject: str
    data: bytes
    what: str


def example(kind: type[M]) -> M:
    return next(message for message in EXAMPLES if isinstance(message, kind))


def corrupted(message: AnyMessage, draw: random.Random) -> tuple[bytes, str]:
    """The message with one number or text of it, however deep, changed into one that cannot be; and which."""
    fields = _raw.decode(msgspec.msgpack.encode(message))
    holder, key = draw.choice(list(_leaves(fields)))
    wrong = draw.choice(_WRONG_TEXTS if isinstance(holder[key], str) else WRONG_NUMBERS)
    holder[key] = wrong
    return msgspec.msgpack.encode(fields), f"{type(message).__name__}.{key} = {str(wrong)[:20]!r}"


def _leaves(value: Any) -> Sequence[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(part, dict | list):
            found.extend(_leaves(part))
        elif isinstance(part, int | float | str) and not isinstance(part, bool) and key != "type":
            found.append((value, key))
    return found


@dataclass(frozen=True)
class Place:
    """Where in a chain a record is forged."""

    episode: EpisodeId
    attempt: int
    step: int
    newest: Checkpoint | None = None
    """The run's version at that time."""


@dataclass(frozen=True)
class Poisoner:
    """Forges records of one run, drawn from `draw`."""

    subjects: Subjects
    rubric: str
    draw: random.Random

    def kinds(self) -> Sequence[Callable[[Place], Poison]]:
        return (
            self.act,
            self.observation,
            self.start,
            self.done,
            self.trajectory,
            self.ghost,
            self.judgement,
            self.call,
            self.block,
            self.checkpoint,
            self.far_checkpoint,
            self.next_checkpoint,
            self.chunk,
            self.heartbeat,
            self.position,
            self.lease,
            self.wake,
            self.task,
            self.letter,
        )

    def _poison(self, key: Access, stream: str, subject: str, message: AnyMessage) -> Poison:
        data, what = corrupted(message, self.draw)
        return Poison(key, stream, subject, data, what)

    def _chain(self, key: Access, place: Place, kind: str, message: AnyMessage) -> Poison:
        names = self.subjects
        stream = names.episodes(names.shard(place.episode))
        return self._poison(key, stream, names.chain_record(place.episode, place.attempt, kind, place.step), message)

    def act(self, place: Place) -> Poison:
        step = msgspec.structs.replace(
            example(StepRequest), episode=place.episode, attempt=place.attempt, step=place.step, screenshots=(0,)
        )
        return self._chain(Access.POLICY, place, "act", step)

    def observation(self, place: Place) -> Poison:
        seen = msgspec.structs.replace(example(Observation), episode=place.episode, attempt=place.attempt, step=place.step)
        return self._chain(Access.BROWSER, place, "obs", seen)

    def start(self, place: Place) -> Poison:
        names = self.subjects
        start = EpisodeStart(episode=place.episode, attempt=place.attempt + 1, worker=WorkerId("forger"))
        stream = names.episodes(names.shard(place.episode))
        return self._poison(Access.BROWSER, stream, names.chain_record(place.episode, place.attempt + 1, "start", 0), start)

    def _played(self, episode: EpisodeId, **changed: Any) -> Trajectory:
        task = msgspec.structs.replace(example(Task), run=self.subjects.run, episode=episode, policy_version=0)
        played: Trajectory = msgspec.structs.replace(example(Trajectory), task=task, **changed)
        return played

    def done(self, place: Place) -> Poison:
        names = self.subjects
        stream = names.episodes(names.shard(place.episode))
        return self._poison(
            Access.BROWSER, stream, names.chain_done(place.episode), self._played(place.episode, attempt=place.attempt)
        )

    def trajectory(self, place: Place) -> Poison:
        names = self.subjects
        return self._poison(
            Access.BROWSER,
            names.trajectories,
            names.trajectory(Split.TRAIN, place.episode),
            self._played(place.episode, attempt=place.attempt),
        )

    def ghost(self, place: Place) -> Poison:
        """An episode that nobody admitted, whose chain holds none of the steps that it claims."""
        names, episode = self.subjects, EpisodeId(f"train-r9999-ghost{self.draw.randrange(10**6)}-m0")
        played = self._played(episode, num_steps=9, num_observations=9, outcome=Outcome.DONE, num_unparsed=0, versions=())
        return Poison(
            Access.BROWSER,
            names.trajectories,
            names.trajectory(Split.TRAIN, episode),
            msgspec.msgpack.encode(played),
            "a trajectory without a chain",
        )

    def judgement(self, place: Place) -> Poison:
        names = self.subjects
        played = self._played(place.episode, attempt=place.attempt)
        judged = msgspec.structs.replace(
            example(Judgement), episode=place.episode, rubric=self.rubric, trajectory=played, reward=math.nan
        )
        return self._poison(Access.JUDGE, names.judged, names.judgement(Split.TRAIN, self.rubric, place.episode), judged)

    def call(self, place: Place) -> Poison:
        call = msgspec.structs.replace(example(JudgeCall), episode=place.episode, rubric=self.rubric, cost=math.inf)
        subject = self.subjects.call(self.rubric, place.episode, call.question, call.answer)
        return self._poison(Access.JUDGE, self.subjects.calls, subject, call)

    def block(self, place: Place) -> Poison:
        block = msgspec.structs.replace(example(SiteBlock), episode=place.episode)
        return self._poison(Access.JUDGE, self.subjects.blocklist, self.subjects.blocked(block.site), block)

    def checkpoint(self, place: Place) -> Poison:
        version = PolicyVersion(self.draw.randrange(40, 60))
        announced = msgspec.structs.replace(example(Checkpoint), run=self.subjects.run, version=version)
        return self._poison(Access.TRAINER, self.subjects.checkpoints, self.subjects.checkpoint(version), announced)

    def far_checkpoint(self, place: Place) -> Poison:
        """Announced far ahead, or under the name of a version to come, at an address that is not the run's."""
        version = PolicyVersion(self.draw.choice((2, 3, 5, 10**6, 2**31 - 1)))
        announced = msgspec.structs.replace(
            example(Checkpoint), run=RunName(self.subjects.run), version=version, uri="file:///etc", parent=None
        )
        data = msgspec.msgpack.encode(announced)
        subject = self.subjects.checkpoint(version)
        return Poison(Access.TRAINER, self.subjects.checkpoints, subject, data, f"version {version} at /etc")

    def next_checkpoint(self, place: Place) -> Poison:
        """The version that comes next, in the run's own folder, where nobody wrote it; none behind another of these."""
        newest = place.newest
        if newest is None or newest.uri.endswith(_UNWRITTEN):
            return self.far_checkpoint(place)
        version = PolicyVersion(newest.version + 1)
        root = newest.uri.rpartition("/")[0] if newest.version else newest.root
        uri = f"{root}/v{version:06d}{_UNWRITTEN}"
        announced = msgspec.structs.replace(newest, version=version, parent=newest.version, uri=uri, root="")
        data, subject = msgspec.msgpack.encode(announced), self.subjects.checkpoint(version)
        return Poison(Access.TRAINER, self.subjects.checkpoints, subject, data, f"version {version} that nobody wrote")

    def chunk(self, place: Place) -> Poison:
        chunk = example(WeightChunk)
        subject = self.subjects.weights(chunk.file_sha256, chunk.begin, chunk.begin + len(chunk.data))
        return self._poison(Access.TRAINER, self.subjects.weight_chunks, subject, chunk)

    def heartbeat(self, place: Place) -> Poison:
        worker = WorkerId("forger")
        wrong = self.draw.choice((math.nan, math.inf, -1.0, 1e300))
        beat = Heartbeat(
            role=Role.POLICY, worker=worker, state="working", at=1.79e9, metrics={"version": wrong, "slots": wrong}
        )
        subject = self.subjects.heartbeat(Role.POLICY, worker)
        data = msgspec.msgpack.encode(beat)
        return Poison(Access.POLICY, self.subjects.heartbeats, subject, data, f"a heartbeat of version {wrong}")

    def position(self, place: Place) -> Poison:
        position = example(Position)
        return self._poison(Access.CONSUMER, self.subjects.positions, self.subjects.position(position.name), position)

    def lease(self, place: Place) -> Poison:
        data = self.draw.choice((b"\xc1", b'{"holder": 7}', b"{}", b"null"))
        return Poison(Access.FEEDER, self.subjects.leases, self.subjects.lease("feeder"), data, f"a lease {data!r}")

    def wake(self, place: Place) -> Poison:
        wake = StepWake(episode=place.episode, attempt=place.attempt, step=place.step, observation_seq=2**40)
        subject = self.subjects.step_any(Split.TRAIN, place.episode, place.attempt, 9_000 + self.draw.randrange(900))
        return self._poison(Access.BROWSER, self.subjects.steps, subject, wake)

    def task(self, place: Place) -> Poison:
        task = msgspec.structs.replace(example(Task), run=self.subjects.run, episode=EpisodeId("forged-m0"))
        return self._poison(Access.FEEDER, self.subjects.tasks, self.subjects.task(Split.TRAIN, task.episode), task)

    def letter(self, place: Place) -> Poison:
        letter = msgspec.structs.replace(example(DeadLetter), stream=self.subjects.tasks)
        return self._poison(Access.BROWSER, self.subjects.advisories, self.subjects.dead(self.subjects.tasks), letter)
