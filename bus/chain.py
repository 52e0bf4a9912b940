"""The chain rule: an episode is a chain of records, and every append names the record it follows.

    task -> start -> obs 0 -> act 0 -> obs 1 -> act 1 -> ... -> done

All appends of one episode are compare-and-set on the last sequence under the episode's prefix. So a new owner that appends
`start` fences a stalled one, the first answer to an observation wins, and a chain ends in exactly one `done`, whoever died
meanwhile.
"""

from collections.abc import Sequence

from bus.ports import Bus, Expect, Record
from bus.room import append_when_room
from bus.subjects import Subjects
from schemas.errors import ChainConflict
from schemas.ids import EpisodeId, WorkerId
from schemas.messages import EpisodeStart, Observation, Outcome, RecordRef, StepRequest, Task, Trajectory


async def admit(bus: Bus, subjects: Subjects, task: Task) -> RecordRef | None:
    """Begins a chain with its task; None when the episode was admitted before."""
    shard = subjects.shard(task.episode)
    try:
        seq = await bus.append(
            subjects.episodes(shard),
            subjects.chain_task(task.episode),
            task,
            expect=Expect(subjects.chain(task.episode), 0),
        )
    except ChainConflict:
        return None
    return RecordRef(shard=shard, seq=seq)


async def answer(bus: Bus, subjects: Subjects, observation: RecordRef, step: StepRequest) -> RecordRef:
    """Appends the policy's answer behind exactly this observation.

    Raises:
        ChainConflict: the observation was answered already, or the episode has a new owner.
    """
    seq = await append_when_room(
        bus,
        subjects.episodes(observation.shard),
        subjects.chain_record(step.episode, step.attempt, "act", step.step),
        step,
        expect=Expect(subjects.chain(step.episode), observation.seq),
    )
    return RecordRef(shard=observation.shard, seq=seq)


async def read(bus: Bus, subjects: Subjects, ref: RecordRef) -> Record | None:
    return await bus.get(subjects.episodes(ref.shard), ref.seq)


async def last(bus: Bus, subjects: Subjects, episode: EpisodeId) -> Record | None:
    return await bus.last(subjects.episodes(subjects.shard(episode)), subjects.chain(episode))


class EpisodeChain:
    """The owner's end of one attempt: appends in order, and learns at once when somebody else has taken over."""

    def __init__(self, bus: Bus, subjects: Subjects, task: Task, attempt: int, last_seq: int) -> None:
        self.task = task
        self.attempt = attempt
        self.task_ref: RecordRef | None = None
        """The chain's first record."""
        self.observations: list[RecordRef] = []
        self.steps: list[RecordRef] = []
        self._bus = bus
        self._subjects = subjects
        self._shard = subjects.shard(task.episode)
        self._stream = subjects.episodes(self._shard)
        self._last_seq = last_seq

    @classmethod
    async def take(cls, bus: Bus, subjects: Subjects, task: Task, worker: WorkerId) -> "EpisodeChain | Trajectory":
        """Becomes the owner of an episode, fencing any earlier one; or returns how it has ended already.

        Raises:
            ChainConflict: another worker took it at the same moment.
        """
        record = await last(bus, subjects, task.episode)
        if record is not None and isinstance(record.message, Trajectory):
            return record.message
        attempt = 1 + _attempt_of(record)
        chain = cls(bus, subjects, task, attempt, record.seq if record else 0)
        await chain._append("start", 0, EpisodeStart(episode=task.episode, attempt=attempt, worker=worker))
        if record is not None and not isinstance(record.message, Task):
            record = await bus.last(chain._stream, subjects.chain_task(task.episode))
        chain.task_ref = RecordRef(shard=chain._shard, seq=record.seq) if record is not None else None
        return chain

    @property
    def earlier(self) -> tuple[RecordRef, ...]:
        """obs 0, act 0, obs 1, ...: what an observation appended now follows."""
        pairs = zip(self.observations, self.steps, strict=True)
        return tuple(ref for pair in pairs for ref in pair)

    async def observe(self, observation: Observation) -> RecordRef:
        ref = await self._append("obs", observation.step, observation)
        self.observations.append(ref)
        return ref

    def answered(self, ref: RecordRef) -> None:
        """Notes the policy's accepted answer, which the next append follows."""
        self.steps.append(ref)
        self._last_seq = ref.seq

    async def pending_answer(self, step: int) -> Record | None:
        """The answer to the latest observation, read from the log: the fallback when the live one was missed."""
        return await self._bus.last(self._stream, self._subjects.chain_record(self.task.episode, self.attempt, "act", step))

    async def finish(self, trajectory: Trajectory) -> None:
        """Ends the chain. Raises `ChainConflict` when the episode has a new owner or has ended."""
        await append_when_room(
            self._bus,
            self._stream,
            self._subjects.chain_done(self.task.episode),
            trajectory,
            expect=Expect(self._subjects.chain(self.task.episode), self._last_seq),
        )

    async def _append(self, kind: str, step: int, message: EpisodeStart | Observation) -> RecordRef:
        subject = self._subjects.chain_record(self.task.episode, self.attempt, kind, step)
        expect = Expect(self._subjects.chain(self.task.episode), self._last_seq)
        self._last_seq = await append_when_room(self._bus, self._stream, subject, message, expect=expect)
        return RecordRef(shard=self._shard, seq=self._last_seq)


def _attempt_of(record: Record | None) -> int:
    match record.message if record else None:
        case EpisodeStart() | Observation() | StepRequest() as message:
            return message.attempt
        case _:
            return 0


async def publish_trajectory(bus: Bus, subjects: Subjects, trajectory: Trajectory) -> None:
    """Puts a finished episode before judges and consumers; doing it twice stores it once."""
    subject = subjects.trajectory(trajectory.task.split, trajectory.episode)
    try:
        await append_when_room(bus, subjects.trajectories, subject, trajectory, expect=Expect(subject, 0))
    except ChainConflict:
        return


async def cancel(bus: Bus, subjects: Subjects, task: Task, outcome: Outcome, reason: str, now: float) -> Trajectory:
    """Ends an episode from outside, keeping the steps it has; fences its owner. Returns how the chain ends."""
    stream = subjects.episodes(subjects.shard(task.episode))
    while True:
        records = await bus.history(stream, subjects.chain(task.episode))
        newest = records[-1] if records else None
        if newest is not None and isinstance(newest.message, Trajectory):
            return newest.message
        attempt = _attempt_of(newest)
        trajectory = Trajectory(
            task=task,
            attempt=attempt,
            outcome=outcome,
            observations=_refs(records, Observation, subjects, attempt),
            steps=_refs(records, StepRequest, subjects, attempt),
            error=reason,
            ended_at=now,
        )
        expect = Expect(subjects.chain(task.episode), newest.seq if newest else 0)
        try:
            await append_when_room(bus, stream, subjects.chain_done(task.episode), trajectory, expect=expect)
        except ChainConflict:
            continue
        return trajectory


def _refs(
    records: Sequence[Record], kind: type[Observation] | type[StepRequest], subjects: Subjects, attempt: int
) -> tuple[RecordRef, ...]:
    return tuple(
        RecordRef(shard=subjects.shard(record.message.episode), seq=record.seq)
        for record in records
        if isinstance(record.message, kind) and record.message.attempt == attempt
    )
