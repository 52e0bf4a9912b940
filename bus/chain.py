"""The chain rule: an episode is a chain of records, and every append names the record it follows.

    task -> start -> obs 0 -> act 0 -> obs 1 -> act 1 -> ... -> [net] -> done

An observation that no policy can answer is followed by a refusal in the place of its act, and that by the end. Where traffic
is recorded, the record stands ahead of the end, and nothing of its attempt comes between.

All appends of one episode are compare-and-set on the last sequence under the episode's prefix. So a new owner that appends
`start` fences a stalled one, the first answer to an observation wins, and a chain ends in exactly one `done`, whoever died
meanwhile. So too there is one record at most under each (episode, attempt, kind, step), which therefore names it for good:
sequences serve the compare-and-set only.

Reads may be answered by a replica that lags: what they show may be old, and what they do not show may be there all the same.
Only a refused append says that there is more.

A record that no reader takes has a place in the chain and no meaning: what comes next is appended behind it. So has an end of
another task than the one that the chain begins with (`bus/chain_state.py`), and what is no answer to the step that waits.

A chain begins with its task, so where nothing stands, everything has aged out: nobody can tell any more how far it came, and
nothing is begun or ended there again (`RecordGone`).
"""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeGuard

from bus.backpressure import append_when_room
from bus.chain_state import aged_out, chain_state_of, is_end, is_gone, place_of, stream_of, whole_chain_state
from bus.creation import create
from bus.ports import Bus, Expect, Record
from bus.retry import Backoff
from bus.stored import standing
from bus.subjects import Subjects
from bus.trying import Tries
from schemas.errors import ChainConflict, MessageCorrupt
from schemas.ids import EpisodeId, WorkerId
from schemas.messages import (
    AnyMessage,
    EpisodeStart,
    NetworkRecord,
    NetworkSummary,
    Observation,
    Outcome,
    RecordRef,
    StepRefusal,
    StepRequest,
    StepWake,
    Task,
    Trajectory,
)

_CANCELLED_AGAIN = Backoff(0.1, 1.0)
_MAX_REASON = 2_000
"""Characters: a refusal always fits into a message."""


async def admit(bus: Bus, subjects: Subjects, task: Task) -> int | None:
    """Begins a chain with its task and returns the record's sequence; None: the episode was admitted with another task."""
    try:
        return await append_when_room(
            bus,
            stream_of(subjects, task.episode),
            subjects.chain_task(task.episode),
            task,
            expect=Expect(subjects.chain(task.episode), 0),
        )
    except ChainConflict:
        return None


@dataclass(frozen=True, slots=True)
class OpenObservation:
    """One that waits for its answer."""

    observation: Observation
    seq: int
    """Which the answer has to follow: its own, or that of what stands behind it and means nothing."""


async def open_observation(bus: Bus, subjects: Subjects, wake: StepWake) -> OpenObservation | None:
    """What a wake-up is about, as long as nothing that means anything stands behind it; None when it needs no answer any more.

    Raises:
        BusUnavailable: it cannot be seen yet.
        RecordGone: it has aged out.
    """
    state = await chain_state_of(bus, subjects, wake.episode)
    if state.seq < wake.observation_seq:
        state = await chain_state_of(bus, subjects, wake.episode, behind=wake.observation_seq - 1)
    if state.end is not None or state.attempt > wake.attempt:
        return None
    found, waits = state.newest, (wake.attempt, wake.step)
    if isinstance(found, NetworkRecord):
        return None
    is_of_step = isinstance(found, Observation | StepRequest | StepRefusal) and (found.attempt, found.step) == waits
    observation = found if is_of_step else await _unanswered(bus, subjects, wake)
    return OpenObservation(observation, state.seq) if isinstance(observation, Observation) else None


async def _unanswered(bus: Bus, subjects: Subjects, wake: StepWake) -> Observation | None:
    """The observation behind which something stands that may belong elsewhere, also under its own subject.

    None once its answer stands, or a later attempt.
    """
    stream = stream_of(subjects, wake.episode)
    seen, acted = (subjects.chain_record(wake.episode, wake.attempt, kind, wake.step) for kind in ("obs", "act"))
    # Asked of the stream's leader: a replica that lags would have an old step answered twice.
    names = await bus.subjects(stream, subjects.chain(wake.episode))
    if acted in names or any(place_of(name)[0] > wake.attempt for name in names):
        return None
    try:
        record = await bus.get(stream, wake.observation_seq)
    except MessageCorrupt:
        return None
    return record.message if record and record.subject == seen and isinstance(record.message, Observation) else None


async def answer(bus: Bus, subjects: Subjects, behind: int, step: StepRequest) -> int:
    """Appends the policy's answer behind exactly the record with this sequence, and returns its own. See `OpenObservation`.

    Raises:
        ChainConflict: the observation was answered already, or the episode has a new owner.
    """
    return await append_when_room(
        bus,
        stream_of(subjects, step.episode),
        subjects.chain_record(step.episode, step.attempt, "act", step.step),
        step,
        expect=Expect(subjects.chain(step.episode), behind),
    )


async def refuse(bus: Bus, subjects: Subjects, wake: StepWake, reason: str, worker: WorkerId) -> int | None:
    """Ends the episode that waits for an answer which nobody can give: its browser is told at once, and ends it with `reason`.

    Returns the refusal's sequence; None when the observation was answered, or its episode went on, before.

    Raises:
        BusUnavailable: what stands behind the observation cannot be seen yet.
        RecordGone: the chain has aged out.
    """
    refusal = StepRefusal(
        episode=wake.episode, attempt=wake.attempt, step=wake.step, reason=reason[:_MAX_REASON], worker=worker
    )

    async def behind(seq: int) -> int:
        subject = subjects.chain_record(wake.episode, wake.attempt, "act", wake.step)
        expect = Expect(subjects.chain(wake.episode), seq)
        return await append_when_room(bus, stream_of(subjects, wake.episode), subject, refusal, expect=expect)

    with suppress(ChainConflict):
        return await behind(wake.observation_seq)
    if (waiting := await open_observation(bus, subjects, wake)) is not None:
        with suppress(ChainConflict):
            return await behind(waiting.seq)
    return None


async def read(bus: Bus, subjects: Subjects, ref: RecordRef) -> Record | None:
    """The record that a message names; None when it has aged out. Raises `BusUnavailable` when it cannot be seen yet."""
    subject = subjects.chain_record(ref.episode, ref.attempt, ref.kind, ref.step)
    return await standing(bus, stream_of(subjects, ref.episode), subject)


async def read_task(bus: Bus, subjects: Subjects, episode: EpisodeId) -> Record | None:
    """The Task that the chain begins with; None when it has aged out. Raises `BusUnavailable` when it cannot be seen yet."""
    return await standing(bus, stream_of(subjects, episode), subjects.chain_task(episode))


async def read_end(bus: Bus, subjects: Subjects, episode: EpisodeId) -> Record | None:
    """The Trajectory that a chain ends with; None when it has not ended, or has aged out. Raises `BusUnavailable` as well."""
    return await standing(bus, stream_of(subjects, episode), subjects.chain_done(episode))


async def history(bus: Bus, subjects: Subjects, episode: EpisodeId, attempt: int) -> Sequence[Record]:
    """The records of one attempt, oldest first: start, obs 0, act 0, ..., in one batched read."""
    return await bus.history(stream_of(subjects, episode), subjects.chain_attempt(episode, attempt))


class EpisodeChain:
    """The owner's end of one attempt: appends in order, and learns at once when somebody else has taken over."""

    def __init__(self, bus: Bus, subjects: Subjects, task: Task, attempt: int, last_seq: int) -> None:
        self.task = task
        self.attempt = attempt
        self.num_observations = 0
        self.num_steps = 0
        """Observations that were answered."""
        self._bus = bus
        self._subjects = subjects
        self._stream = stream_of(subjects, task.episode)
        self.last_seq = last_seq
        """Of the chain's newest record, as far as its owner knows."""
        self.network: NetworkSummary | None = None
        """Of the record of its traffic, once that stands."""

    @classmethod
    async def take(cls, bus: Bus, subjects: Subjects, task: Task, worker: WorkerId) -> "EpisodeChain | Trajectory":
        """Becomes the owner of an episode, fencing any earlier one; or returns how it has ended already.

        Raises:
            ChainConflict: another worker took it at the same moment.
            RecordGone: its chain has aged out.
        """
        state = await whole_chain_state(bus, subjects, task.episode)
        while state.end is None:
            attempt = 1 + state.highest_attempt
            chain = cls(bus, subjects, task, attempt, state.seq)
            try:
                await chain._append(
                    "start", 0, EpisodeStart(episode=task.episode, attempt=attempt, worker=worker, draw=secrets.token_hex(8))
                )
            except ChainConflict:
                # Either somebody has begun this attempt, or the earlier one went on behind what we were shown.
                state = await whole_chain_state(bus, subjects, task.episode, behind=state.seq)
                if state.end is None and state.highest_attempt >= attempt:
                    raise
            else:
                return chain
        return state.end

    async def observe(self, observation: Observation) -> int:
        """Appends what is seen at the next step, and returns the sequence that its answer has to follow."""
        await self._append("obs", observation.step, observation)
        self.observed(self.last_seq)
        return self.last_seq

    def observed(self, seq: int) -> None:
        """Notes the sequence of an observation that stands, which the next append follows."""
        self.num_observations += 1
        self.last_seq = seq

    async def num_played_before(self) -> int:
        """Earlier attempts in which a policy had answered: what they did on a site is not undone."""
        if self.attempt == 1:
            return 0
        names = await self._bus.subjects(self._stream, self._subjects.chain(self.task.episode))
        return len({attempt for attempt, kind in map(place_of, names) if kind == "act" and attempt < self.attempt})

    async def record(self, network: NetworkRecord) -> None:
        """Appends the record of its traffic. Nothing but the end comes behind it.

        Raises:
            ChainConflict: something was appended that its owner does not know of.
            MessageTooLarge: the server never takes it.
        """
        await self._append("net", 0, network)
        self.network = network.summary

    def recorded(self, seq: int, network: NetworkSummary) -> None:
        """Notes the sequence of the record of its traffic that stands."""
        self.network, self.last_seq = network, seq

    def answered(self, seq: int) -> None:
        """Notes the sequence of the policy's accepted answer, which the next append follows."""
        self.num_steps += 1
        self.last_seq = seq

    def refused(self, seq: int) -> None:
        """Notes the sequence of the policy's refusal, behind which only the end comes."""
        self.last_seq = seq

    def pass_over(self, unreadable: MessageCorrupt) -> None:
        """Goes on behind a record that stands where the answer belongs, and that no reader takes.

        Raises:
            ChainConflict: it stands elsewhere: somebody else has gone on with the episode.
        """
        attempt, kind = place_of(unreadable.subject)
        if (attempt, kind) != (self.attempt, "act"):
            raise ChainConflict(f"{self.task.episode} went on without this worker") from unreadable
        self.last_seq = unreadable.seq

    async def pending_answer(self) -> Record | None:
        """The answer or refusal behind the latest observation, read from the log: for when the live one was missed.

        Many slots look, for as long as no policy is there: no screenshot travels.

        Raises:
            ChainConflict: somebody else went on with the episode, or ended it.
            RecordGone: the attempt has aged out, and no answer can come any more.
            MessageCorrupt: no reader takes what stands there.
        """
        episode, attempt, names = self.task.episode, self.attempt, self._subjects
        acted = names.chain_record(episode, attempt, "act", self.num_observations - 1)
        if (answered := await self._bus.last(self._stream, acted)) is not None:
            return answered
        ended = await self._bus.last(self._stream, names.chain_done(episode))
        taken = await self._bus.last(self._stream, names.chain_record(episode, attempt + 1, "start", 0))
        if taken or (ended and isinstance(ended.message, Trajectory) and await is_end(self._bus, names, ended.message)):
            raise ChainConflict(f"{episode} went on without this worker")
        # Its oldest record, and a small one: while it stands, so does the observation.
        began = await self._bus.last(self._stream, names.chain_record(episode, attempt, "start", 0))
        if began is None and await is_gone(self._bus, names, episode):
            raise aged_out(episode)
        return None

    async def finish(self, trajectory: Trajectory) -> None:
        """Ends the chain. Raises `ChainConflict` when the episode has a new owner or has ended."""
        await append_when_room(
            self._bus,
            self._stream,
            self._subjects.chain_done(self.task.episode),
            trajectory,
            expect=Expect(self._subjects.chain(self.task.episode), self.last_seq),
        )

    async def _append(self, kind: str, step: int, message: EpisodeStart | Observation | NetworkRecord) -> None:
        subject = self._subjects.chain_record(self.task.episode, self.attempt, kind, step)
        expect = Expect(self._subjects.chain(self.task.episode), self.last_seq)
        self.last_seq = await append_when_room(self._bus, self._stream, subject, message, expect=expect)


def is_answer(message: AnyMessage, attempt: int) -> TypeGuard[StepRequest | StepRefusal]:
    """Whether it is what a policy said in this attempt."""
    return isinstance(message, StepRequest | StepRefusal) and message.attempt == attempt


async def publish_trajectory(bus: Bus, subjects: Subjects, trajectory: Trajectory) -> None:
    """Puts a finished episode before judges and consumers; doing it twice stores it once."""
    await create(bus, subjects.trajectories, subjects.trajectory(trajectory.task.split, trajectory.episode), trajectory)


async def cancel(bus: Bus, subjects: Subjects, task: Task, outcome: Outcome, reason: str, now: float) -> Trajectory:
    """Ends an episode from outside, keeping the steps it has; fences its owner. Returns how the chain ends.

    Raises:
        RecordGone: its chain has aged out.
    """
    stream = stream_of(subjects, task.episode)
    async for _ in Tries(_CANCELLED_AGAIN):
        state = await whole_chain_state(bus, subjects, task.episode)
        if state.end is not None:
            return state.end
        num_observations, num_steps = _counts(state.newest)
        trajectory = Trajectory(
            task=task,
            attempt=state.attempt,
            outcome=outcome,
            num_observations=num_observations,
            num_steps=num_steps,
            error=reason,
            ended_at=now,
            network=state.newest.summary if isinstance(state.newest, NetworkRecord) else None,
        )
        expect = Expect(subjects.chain(task.episode), state.seq)
        try:
            await append_when_room(bus, stream, subjects.chain_done(task.episode), trajectory, expect=expect)
        except ChainConflict:
            continue
        return trajectory
    raise AssertionError("the rounds never end")


def _counts(newest: AnyMessage | None) -> tuple[int, int]:
    """Observations and answers of an attempt, by its newest record: they take turns, numbered from 0."""
    match newest:
        case Observation(step=step) | StepRefusal(step=step):
            return step + 1, step
        case StepRequest(step=step):
            return step + 1, step + 1
        case NetworkRecord(num_observations=num_observations, num_steps=num_steps):
            return num_observations, num_steps
        case _:
            return 0, 0
