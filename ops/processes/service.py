"""A worker that can be found and told things while it runs: a NATS micro service on the bus, and SIGUSR1 on its machine.

SIGUSR1 drains, for systemd, Kubernetes and whoever else is on the machine and not on the bus.
"""

import importlib.metadata
import os
import secrets
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import anyio
import msgspec
import structlog

from bus.background import background
from bus.draining import Drain
from bus.jetstream import JetStreamBus
from bus.jetstream.micro import MicroService, NotUnderstood
from bus.permissions import service_name
from bus.presence import Status
from bus.subjects import Subjects
from ops.processes.orders import Order, WorkerReport
from ops.processes.restarts import EXIT_RESTART

DRAIN_SIGNAL = signal.SIGUSR1
_log = structlog.get_logger()


@asynccontextmanager
async def reachable(bus: JetStreamBus, subjects: Subjects, status: Status) -> AsyncIterator[None]:
    """The worker takes orders while the context is open."""
    async with bus.serve(micro_service(subjects, status)), background(partial(_heed_signal, status.drain)):
        yield


def exit_code(drain: Drain) -> int:
    """What tells whoever keeps the worker running whether to start it anew."""
    return EXIT_RESTART if drain.comes_back else 0


def micro_service(subjects: Subjects, status: Status) -> MicroService:
    desk = _Desk(status, secrets.token_hex(11))
    role, worker = status.role, status.worker
    return MicroService(
        name=service_name(role.value),
        id=desk.id,
        version=_version(),
        description=f"{role.value} workers of a Millrace run",
        metadata={
            "run": subjects.run,
            "role": role.value,
            "worker": worker,
            "host": socket.gethostname(),
            "pid": str(os.getpid()),
        },
        endpoint="control",
        subject=subjects.control(role, worker),
        answer=desk.answer,
        status=lambda: msgspec.to_builtins(desk.report()),
    )


@dataclass(frozen=True)
class _Desk:
    """Takes orders for one worker."""

    status: Status
    id: str

    def answer(self, question: bytes) -> bytes:
        """Raises `NotUnderstood`."""
        try:
            order = Order(question.decode().strip() or Order.STATUS)
        except ValueError:
            raise NotUnderstood(f"write one of {', '.join(Order)}") from None
        if order is not Order.STATUS:
            _log.info("told_to_leave", order=order.value)
            self.status.drain.request(comes_back=order is Order.RESTART)
        return msgspec.json.encode(self.report())

    def report(self) -> WorkerReport:
        beat = self.status.heartbeat(time.time())
        return WorkerReport(
            role=beat.role, worker=beat.worker, id=self.id, state=beat.state, note=beat.note, metrics=beat.metrics
        )


async def _heed_signal(drain: Drain) -> None:
    with anyio.open_signal_receiver(DRAIN_SIGNAL) as signals:
        async for _ in signals:
            _log.info("told_to_leave", order="signal")
            drain.request()


def _version() -> str:
    try:
        return importlib.metadata.version("millrace")
    except importlib.metadata.PackageNotFoundError:
        return "0.0.0"
