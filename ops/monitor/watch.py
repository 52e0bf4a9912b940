"""Keeps a `MonitorState` current, read-only: with the monitor's key, which may write nothing at all.

What is heard as it is published are small messages: tasks, starts, the phases that browser workers tell, ends. Screenshots and
tokens never travel here. Never listen on `<run>.>` or `<run>.wake.*`: an offer to a policy worker that has gone is declined at
once only as long as nobody hears it.
"""

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
import structlog

from bus.background import background
from bus.bulkhead import Bulkhead
from bus.context import WorkerContext
from bus.fault import Fault
from bus.following import follow
from bus.patience import move_on_after_running
from bus.ports import Bus, Record
from bus.presence import Status
from bus.retry import SERVER_AWAITED
from bus.server_time import ServerClock
from bus.subjects import Subjects
from bus.trying import outlast
from ops.monitor.alerts.alert import Alert, AlertBook, Condition, Key
from ops.monitor.alerts.look import Look
from ops.monitor.measuring import Measuring
from ops.monitor.passing import passing_over
from ops.monitor.reconciling import Reconciling
from ops.monitor.rules import conditions
from ops.monitor.state import MonitorState
from schemas.config import Config
from schemas.errors import BusError, BusUnavailable
from schemas.extensions import ALERTS
from schemas.ids import WorkerId
from schemas.messages import Role

_log = structlog.get_logger()
_TICK_S = 1.0
_JOIN_S = 30.0
"""A server that does not say which episodes are live does not keep everything else waiting for longer."""


class MonitorWatch:
    """Use `monitoring`."""

    def __init__(self, bus: Bus, subjects: Subjects, config: Config, *, disk: Path | None) -> None:
        self.now = ServerClock()
        """Everything here is dated by the server's time."""
        self.state = MonitorState(config.monitor_config, began_at=self.now())
        bounds = config.monitor_config
        self._rules = ALERTS.all(bounds.alerts)
        self._book = AlertBook(bounds.raise_after_s, bounds.clear_after_s)
        self._bus = bus
        self._subjects = subjects
        self._config = config
        self._disk = disk
        self._bulkhead = Bulkhead(WorkerContext(bus, subjects, Status(Role.MONITOR, WorkerId(Role.MONITOR.value))))
        """For its log alone: a monitor may tell nobody."""
        self._met: set[tuple[Fault, str]] = set()
        self._sources = (
            (subjects.judged, subjects.judgements_by(config.bus_config.trained_rubric)),
            (subjects.checkpoints, subjects.everything("checkpoint")),
            (subjects.served, subjects.everything("served")),
            (subjects.heartbeats, subjects.everything("heartbeat")),
            (subjects.advisories, subjects.everything("dead")),
            (subjects.advisories, subjects.everything("resent")),
            (subjects.advisories, subjects.everything("fault")),
        )
        self._read = {subject: anyio.Event() for _, subject in self._sources}
        """Set when all that was stored is folded in."""
        self.num_read = 0
        """Records of that, so far."""
        self._measured = anyio.Event()
        self._joined = anyio.Event()
        self.changed = anyio.Event()
        """Replaced whenever it is set: at every message, at most."""

    @property
    def missing(self) -> list[str]:
        """What has not been read yet, for people; empty: the state is complete."""
        unread = [subject for subject, event in self._read.items() if not event.is_set()]
        measured = [] if self._measured.is_set() else ["how queues and streams stand"]
        joined = [] if self._joined.is_set() else ["the live episodes"]
        return [*unread, *measured, *joined]

    async def wait_complete(self) -> None:
        """Returns when the state holds everything that the streams held when this monitor came."""
        for event in (*self._read.values(), self._measured, self._joined):
            await event.wait()

    async def run(self) -> None:
        names, bus_config = self._subjects, self._config.bus_config
        measuring = Measuring(
            self._bus,
            names,
            bus_config,
            self._config.monitor_config,
            self.state,
            self._disk,
            self._measured,
            self.now,
            self._pass_over_once,
        )
        reconciling = Reconciling(self._bus, names, bus_config, self.state, self._joined, self.now, self._pass_over)
        await self._set_clock()
        async with AsyncExitStack() as stack, anyio.create_task_group() as group:
            for subject in (f"{names.run}.ep.*.*.task", f"{names.run}.ep.*.*.*.start.*", f"{names.run}.phase.*", self._ends):
                group.start_soon(self._hear, await self._listen(stack, subject))
            group.start_soon(measuring.run)
            group.start_soon(reconciling.run)
            group.start_soon(self._tick)
            # Judgements last: an episode that is found unjudged must not have been judged before it was found.
            async with move_on_after_running(_JOIN_S):
                await self._joined.wait()
            for stream, subject in self._sources:
                group.start_soon(self._follow, stream, subject)

    async def _set_clock(self) -> None:
        """Ahead of all that is dated; a server that is away is asked again with every measurement."""
        with suppress(BusError):
            self.now.heard((await self._bus.stream_state(self._subjects.heartbeats)).now_s)
            self.state.begin(self.now())

    @property
    def _ends(self) -> str:
        return f"{self._subjects.run}.ep.*.*.done"

    async def _listen(self, stack: AsyncExitStack, subject: str) -> AsyncIterator[Record]:
        """Waits for a server that is away."""
        return await outlast(
            lambda: stack.enter_async_context(self._bus.listen(subject)), (BusUnavailable,), SERVER_AWAITED, failed=_say
        )

    async def _hear(self, heard: AsyncIterator[Record]) -> None:
        async for record in heard:
            self._take(self.state.heard, record)

    async def _follow(self, stream: str, subject: str) -> None:
        read_up = self._read[subject]

        def take(record: Record) -> None:
            self.num_read += not read_up.is_set()
            self._take(self.state.stored, record)

        await follow(self._bus, stream, subject, take, read_up=read_up.set, outlasted=(BusError,))

    def _take(self, fold: Callable[[Record, float], None], record: Record) -> None:
        try:
            fold(record, self.now())
        except Exception as error:  # noqa: BLE001 - one record ends no watch over all others
            self._pass_over(error, f"{record.stream or record.subject}/{record.seq}")
        self._note_change()

    def _pass_over(self, error: Exception, item: str) -> None:
        self._bulkhead.note(error, item)
        self.state.num_passed_over += 1

    def _pass_over_once(self, error: Exception, item: str) -> None:
        """Of what is looked at again and again: the same fault of the same item is told once."""
        met = (Fault.of(error), item)
        if met not in self._met:
            self._met.add(met)
            self._pass_over(error, item)

    def _conditions(self, now: float, raised: Collection[Key] = ()) -> list[Condition]:
        look = Look(state=self.state, config=self._config, now=now, raised=raised)
        return conditions(look, self._rules, pass_over=self._pass_over_once)

    def _note_change(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()

    async def _tick(self) -> None:
        while True:
            now = self.now()
            with passing_over(self._pass_over_once, "what has expired"):
                self.state.expire(now)
            self._book.update(self._conditions(now, self._book.raised), now)
            self._note_change()
            await anyio.sleep(_TICK_S)

    @property
    def alerts(self) -> list[Alert]:
        """Those that are raised."""
        return self._book.alerts

    def conditions_now(self) -> list[Alert]:
        """All that hold at this moment, for a look that cannot wait until they have held for a while."""
        now = self.now()
        return AlertBook(0.0, 0.0, patient=False).update(self._conditions(now), now)

    async def wait_until(self, holds: Callable[[MonitorState], bool]) -> None:
        """Returns when `holds` is true of the state."""
        while not holds(self.state):
            await self.changed.wait()


def _say(error: BusUnavailable) -> None:
    _log.warning("server_awaited", reason=str(error))


@asynccontextmanager
async def monitoring(bus: Bus, subjects: Subjects, config: Config, *, disk: Path | None = None) -> AsyncIterator[MonitorWatch]:
    """A watch that is kept current while the context is open. `disk`: the folder of the server's store, if it is here."""
    watch = MonitorWatch(bus, subjects, config, disk=disk)
    async with background(watch.run):
        yield watch
