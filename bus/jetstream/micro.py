"""A worker as a NATS micro service: it answers `nats micro ls`, `info` and `stats`, and has one endpoint that takes orders.

The messages are those of the client libraries' service API (`io.nats.micro.v1`). They are spoken here over `Link`, whose
subscriptions survive a client that gave up.
"""

import datetime
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio
import msgspec
import structlog
from nats.aio.msg import Msg

from bus.background import background
from bus.handoff import Handoff
from bus.jetstream.link import Link
from bus.jetstream.retrying import RetryLimits, known
from bus.jetstream.subscriptions import Feed
from bus.permissions import discovery
from schemas.errors import BusError

_log = structlog.get_logger()
_KIND = "io.nats.micro.v1.{}_response"
_CLOSING_S = 1.0
_ERROR = "Nats-Service-Error"
_ERROR_CODE = "Nats-Service-Error-Code"
_BAD_REQUEST = "400"


class NotUnderstood(Exception):
    """The endpoint was asked for something that it does not know; the text says what it knows."""


@dataclass(frozen=True, kw_only=True)
class MicroService:
    """One instance of a service."""

    name: str
    id: str
    """Of this process: another one under the same worker's name has another."""
    version: str
    description: str
    metadata: Mapping[str, str]
    endpoint: str
    subject: str
    """Where the endpoint listens."""
    answer: Callable[[bytes], bytes]
    """Answers a request at once. Raises `NotUnderstood`, and nothing else."""
    status: Callable[[], Mapping[str, object]]
    """What the statistics say beside counts and times."""
    started: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z"))


@dataclass
class _Reply:
    subject: str
    data: bytes
    headers: dict[str, str] | None = None


class _Serving:
    """Answers in the order of the questions; counts them."""

    def __init__(self, link: Link, service: MicroService) -> None:
        self._link = link
        self._service = service
        self._replies = Handoff[_Reply]()
        self._num_requests = 0
        self._num_errors = 0
        self._last_error = ""
        self._busy_ns = 0

    async def subscribe(self) -> list[Feed]:
        service = self._service
        asked = {"PING": self._ping, "INFO": self._info, "STATS": self._stats}
        feeds = [
            await self._link.subscribe(subject, partial(self._discovered, asked[subject.split(".")[1]]))
            for subject in discovery(service.name, service.id)
        ]
        return [*feeds, await self._link.subscribe(service.subject, self._asked)]

    async def send(self) -> None:
        async for reply in self._replies:
            await self._send(reply)

    async def send_rest(self) -> None:
        while self._replies.num_items:
            await self._send(await anext(self._replies))

    async def _send(self, reply: _Reply) -> None:
        try:
            await self._link.publish(reply.subject, reply.data, headers=reply.headers)
        except BusError as error:
            _log.info("question_unanswered", subject=reply.subject, reason=str(error))

    def _discovered(self, answer: Callable[[], dict[str, object]], message: Msg) -> None:
        if message.reply:
            self._replies.put(_Reply(message.reply, msgspec.json.encode(answer())))

    def _asked(self, message: Msg) -> None:
        if not message.reply:
            return
        began, headers = time.monotonic_ns(), None
        try:
            data = self._service.answer(message.data)
        except NotUnderstood as error:
            data, headers = b"", {_ERROR: str(error), _ERROR_CODE: _BAD_REQUEST}
            self._num_errors, self._last_error = self._num_errors + 1, f"{_BAD_REQUEST}:{error}"
        self._num_requests += 1
        self._busy_ns += time.monotonic_ns() - began
        self._replies.put(_Reply(message.reply, data, headers))

    def _identity(self, kind: str) -> dict[str, object]:
        service = self._service
        return {
            "type": _KIND.format(kind),
            "name": service.name,
            "id": service.id,
            "version": service.version,
            "metadata": dict(service.metadata),
        }

    def _endpoint(self) -> dict[str, object]:
        return {"name": self._service.endpoint, "subject": self._service.subject, "queue_group": ""}

    def _ping(self) -> dict[str, object]:
        return self._identity("ping")

    def _info(self) -> dict[str, object]:
        return {**self._identity("info"), "description": self._service.description, "endpoints": [self._endpoint()]}

    def _stats(self) -> dict[str, object]:
        figures = {
            "num_requests": self._num_requests,
            "num_errors": self._num_errors,
            "last_error": self._last_error,
            "processing_time": self._busy_ns,
            "average_processing_time": self._busy_ns // max(self._num_requests, 1),
            "data": self._service.status(),
        }
        return {**self._identity("stats"), "started": self._service.started, "endpoints": [{**self._endpoint(), **figures}]}


@asynccontextmanager
async def served(link: Link, service: MicroService, limits: RetryLimits) -> AsyncIterator[None]:
    """Answers while the context is open. A server that does not permit it is said so in the log, and nothing is lost by it."""
    serving = _Serving(link, service)
    feeds = await serving.subscribe()
    try:
        # Questions come over other connections: the server must know of us first.
        await known(link, service.subject, limits)
        async with background(serving.send):
            yield
    finally:
        for feed in feeds:
            await link.forget(feed)
        with anyio.move_on_after(_CLOSING_S, shield=True):
            await serving.send_rest()
