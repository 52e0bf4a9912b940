"""Announces the version that this policy worker serves, and takes no steps while others serve newer ones.

Invariant: what admission may count is confirmed before it counts. A version is said after it was loaded, and before the worker
answers for the first time; that it cannot follow is said after the worker has stopped taking steps that others should answer.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import structlog

from agents.duty import Duty
from agents.following import Following
from bus.background import background
from bus.backpressure import append_when_room
from bus.following import patient_tail
from bus.ports import Bus, Expect
from bus.retry import SERVER_AWAITED
from bus.served import ServedVersions, served_records
from bus.subjects import Subjects
from bus.trying import outlast
from schemas.errors import BusError, BusUnavailable, ChainConflict
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import Role, ServedVersion, ServingState

_LOOK_S = 2.0
_LEAVING_S = 2.0
_log = structlog.get_logger()


class ServedRecord:
    """The one record of a worker on SERVED. A copy of an older word that arrives late is refused by its sequence."""

    def __init__(self, bus: Bus, subjects: Subjects, worker: WorkerId) -> None:
        self._bus = bus
        self._stream = subjects.served
        self._subject = subjects.served_by(worker)
        self._seq: int | None = None

    @property
    def seq(self) -> int:
        """Of the newest word; 0: none was written here."""
        return self._seq or 0

    async def write(self, message: ServedVersion) -> int:
        """Returns its sequence once the server has confirmed it. Raises `BusUnavailable`."""
        while True:
            if self._seq is None:
                newest = await self._bus.last(self._stream, self._subject)
                self._seq = newest.seq if newest is not None else 0
            try:
                expect = Expect(self._subject, self._seq)
                self._seq = await append_when_room(self._bus, self._stream, self._subject, message, expect=expect)
                return self._seq
            except ChainConflict:
                self._seq = None


@asynccontextmanager
async def away_outside(bus: Bus, subjects: Subjects, worker: WorkerId) -> AsyncIterator[None]:
    """What a process of this name served before counts no more, and what is said inside counts until the context is left."""
    away = ServedVersion(worker=worker, state=ServingState.AWAY, version=PolicyVersion(0), at=time.time())
    await ServedRecord(bus, subjects, worker).write(away)
    try:
        yield
    finally:
        # Unsaid, it is known when the heartbeats have stopped for a while.
        with anyio.move_on_after(_LEAVING_S, shield=True):
            try:
                await ServedRecord(bus, subjects, worker).write(away)
            except BusError as error:
                _log.info("leaving_unsaid", worker=worker, reason=str(error))


class Serving:
    """Turns `duty` off while this worker is left behind."""

    def __init__(self, bus: Bus, subjects: Subjects, worker: WorkerId, duty: Duty) -> None:
        self._bus = bus
        self._subjects = subjects
        self._worker = worker
        self._duty = duty
        self._record = ServedRecord(bus, subjects, worker)
        self._known = ServedVersions()

    async def begin(self) -> None:
        """Learns what the others serve. Raises `BusUnavailable`."""
        for record in await served_records(self._bus, self._subjects):
            self._known.apply(record.message, anyio.current_time(), record.seq)

    async def say(self, following: Following) -> None:
        """Returns once it is confirmed; outlasts a server that is away."""
        said = self._said(following)
        if said.state is ServingState.UNABLE:
            self._known.apply(said, anyio.current_time(), self._record.seq + 1)
            self._turn()

        def unsaid(error: BusUnavailable) -> None:
            _log.warning("served_version_unsaid", worker=self._worker, version=said.version, reason=str(error))

        seq = await outlast(partial(self._record.write, said), (BusUnavailable,), SERVER_AWAITED, failed=unsaid)
        self._known.apply(said, anyio.current_time(), seq)
        self._turn()

    def _said(self, following: Following) -> ServedVersion:
        wanted = following.wanted if following.unable else None
        return ServedVersion(
            worker=self._worker,
            state=ServingState.SERVING if wanted is None else ServingState.UNABLE,
            version=following.served,
            at=time.time(),
            announced_seq=following.announced_seq,
            wanted=None if wanted is None else wanted.version,
            reason=following.reason if wanted is not None else "",
        )

    async def follow(self) -> None:
        """Hears what the others serve, and who of them is alive; never returns."""
        names = self._subjects
        sources = (
            (names.served, names.everything("served")),
            (names.heartbeats, names.everything("heartbeat", Role.POLICY.value)),
        )
        async with background(*(partial(self._hear, stream, subject) for stream, subject in sources)):
            while True:
                await anyio.sleep(_LOOK_S)
                self._turn()

    async def _hear(self, stream: str, subject: str) -> None:
        async with patient_tail(self._bus, stream, subject) as records:
            async for record in records:
                self._known.apply(record.message, anyio.current_time(), record.seq)
                self._turn()

    def _turn(self) -> None:
        is_behind = self._known.is_left_behind(self._worker, anyio.current_time())
        if is_behind == self._duty.is_on:
            _log.warning("steps_left_to_others" if is_behind else "steps_taken_again", worker=self._worker)
        self._duty.turn(not is_behind)
