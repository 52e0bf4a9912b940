"""The workers of a run as its administrator reaches them: who is there, and orders to one of them."""

from collections.abc import Iterable
from dataclasses import dataclass

import anyio
import msgspec

from bus.jetstream import JetStreamBus
from bus.subjects import Subjects
from ops.processes.orders import Order, WorkerReport
from schemas.errors import BusUnavailable, ConfigurationError
from schemas.ids import WorkerId
from schemas.messages import Heartbeat, Role

_ANSWER_S = 5.0
_AGAIN_S = 1.0
"""Until who is not there is asked once more: behind a stall of the server, connections are renewed one after the other."""
_ORDER = (Role.BROWSER, Role.POLICY, Role.JUDGE, Role.ARCHIVER, Role.FEEDER, Role.TRAINER)


class Unanswered(BusUnavailable):
    """The worker is known to the server, but does not answer: busy, stopped, or cut off a moment ago."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which workers are meant: by name, by role, or all."""

    names: tuple[str, ...] = ()
    roles: tuple[Role, ...] = ()
    everybody: bool = False

    def __post_init__(self) -> None:
        if sum((bool(self.names), bool(self.roles), self.everybody)) != 1:
            raise ConfigurationError("say which workers: their names, --role ROLE, or --all")

    def of(self, present: Iterable[WorkerReport]) -> tuple[WorkerReport, ...]:
        """Raises `ConfigurationError` for a name that nobody there has."""
        present = sorted(present, key=lambda report: (_ORDER.index(report.role), report.worker))
        chosen = [one for one in present if self.everybody or one.role in self.roles or one.worker in self.names]
        missing = sorted(set(self.names) - {report.worker for report in chosen})
        if missing:
            listed = ", ".join(report.worker for report in present) or "nobody"
            raise ConfigurationError(f"there is no worker {', '.join(missing)}: there are {listed}")
        return tuple(chosen)


class Workers:
    """Over a connection with the administrator's key."""

    def __init__(self, bus: JetStreamBus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects

    async def present(self) -> tuple[WorkerReport, ...]:
        """Everybody whose heartbeat is kept and who answers."""
        records = await self._bus.history(self._subjects.heartbeats, self._subjects.everything("heartbeat"))
        beats = [record.message for record in records if isinstance(record.message, Heartbeat)]
        found = []
        for beat in beats:
            if beat.role not in _ORDER:
                continue  # no worker
            try:
                report = await self.tell(beat.role, beat.worker, Order.STATUS)
            except Unanswered:
                report = WorkerReport(role=beat.role, worker=beat.worker, id="", state=beat.state, note="does not answer")
            if report is not None:
                found.append(report)
        return tuple(found)

    async def tell(self, role: Role, worker: WorkerId, order: Order) -> WorkerReport | None:
        """What the worker answers; None: there is none of this name, nor a second later.

        Raises:
            Unanswered: there is one, and it does not answer.
        """
        subject, said = self._subjects.control(role, worker), order.value.encode()
        try:
            answer = await self._bus.ask(subject, said, timeout_s=_ANSWER_S)
            if answer is None:
                await anyio.sleep(_AGAIN_S)
                answer = await self._bus.ask(subject, said, timeout_s=_ANSWER_S)
        except BusUnavailable as error:
            raise Unanswered(f"{worker} does not answer") from error
        return None if answer is None else msgspec.json.decode(answer, type=WorkerReport)
