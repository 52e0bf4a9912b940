"""A provider of browser sessions on loopback, with Browserbase's API, that fails as told and counts its sessions itself.

Left to itself it ends no session, neither with its connection nor after its time, so that whatever ends was ended by a worker.
"""

import json
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.abc

from tests.deadlines import HANGS_S

KEY = "the-key"
_MOST_CARRIED = 512
_QUERY = re.compile(r"user_metadata\['run'\]:'([^']*)'")
_CLOSED = 1
"""A port where nobody listens."""


class Fault(StrEnum):
    """Of one session, and of the request for it."""

    NONE = "none"
    SLOW = "slow"
    """To be opened."""
    REFUSED = "refused"
    """With an error of the server."""
    UNANSWERED = "unanswered"
    """It is opened, and the answer never comes."""
    DOUBLED = "doubled"
    """Two are opened, and one is told of."""
    UNREACHABLE = "unreachable"
    """It is opened, and nobody is at its address."""
    LOST = "lost"
    """Its connection is closed after a while."""
    EXPIRED = "expired"
    """It is over after a while, which nothing but the API says."""
    NOT_ENDED = "not ended"
    """Its release is refused the first time."""


@dataclass(eq=False)
class Session:
    id: str
    carried: Mapping[str, str]
    fault: Fault
    asked: Mapping[str, object]
    """What it was asked for with."""
    opened_at: float = field(default_factory=time.time)
    ended_at: float = 0.0
    """0: it is running."""
    why_ended: str = ""
    num_refused: int = 0
    """Releases."""

    @property
    def is_running(self) -> bool:
        return not self.ended_at

    @property
    def age_s(self) -> float:
        return (self.ended_at or time.time()) - self.opened_at


class Browsers(Protocol):
    """What is behind sessions."""

    async def start(self, session: Session) -> str:
        """The address of its DevTools."""
        ...

    async def stop(self, session: Session) -> None: ...


@dataclass(frozen=True)
class Reply:
    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        body = json.dumps(self.body).encode()
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        return f"HTTP/1.1 {self.status} -\r\ncontent-length: {len(body)}\r\n{lines}\r\n".encode() + body


class ScriptedProvider:
    def __init__(
        self,
        browsers: Browsers,
        group: anyio.abc.TaskGroup,
        *,
        faults: Callable[[int], Fault] = lambda _: Fault.NONE,
        most: int = 1000,
        slow_s: float = 0.0,
        lives_s: float = 0.0,
    ) -> None:
        """
        Args:
            faults: of the n-th request for a session.
            most: sessions at once; whoever asks for more is told to come again.
            slow_s: the pause of those that are slow.
            lives_s: after which sessions are lost or expire that are to.
        """
        self.port = 0
        self.sessions: dict[str, Session] = {}
        self.num_asked = 0
        """Requests for a session that found room."""
        self.num_full = 0
        self.num_strangers = 0
        self.most_at_once = 0
        self.most = most
        self._browsers, self._group, self._faults = browsers, group, faults
        self._slow_s, self._lives_s = slow_s, lives_s
        self._changed = anyio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def until(self, holds: Callable[["ScriptedProvider"], bool]) -> None:
        with anyio.fail_after(HANGS_S):
            while not holds(self):
                await self._changed.wait()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    @property
    def running(self) -> list[Session]:
        return [session for session in self.sessions.values() if session.is_running]

    async def finish(self, session: Session, why: str) -> None:
        if session.is_running:
            session.ended_at, session.why_ended = time.time(), why
            self._note_change()
            if why != Fault.EXPIRED:
                await self._browsers.stop(session)

    # HTTP -------------------------------------------------------------------------------------------------------------

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            heard = b""
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                while True:
                    while b"\r\n\r\n" not in heard:
                        heard += await stream.receive()
                    head, _, heard = heard.partition(b"\r\n\r\n")
                    first, *lines = head.decode().split("\r\n")
                    said = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                    length = int(said.get("content-length", "0"))
                    while len(heard) < length:
                        heard += await stream.receive()
                    body, heard = heard[:length], heard[length:]
                    if (reply := await self._reply(first, said, json.loads(body or b"{}"))) is None:
                        return
                    await stream.send(reply.encoded())

    async def _reply(self, first: str, said: Mapping[str, str], body: Mapping[str, object]) -> Reply | None:
        """None: nothing is said."""
        method, target, _ = first.split(" ")
        parts = urlsplit(target)
        _, _, kind, *named = parts.path.split("/")
        if kind != "sessions":
            return Reply(404, {"message": "there is nothing here"})
        if said.get("x-bb-api-key") != KEY:
            self.num_strangers += 1
            return Reply(401, {"message": "who are you?"})
        match method, named:
            case "POST", []:
                return await self._open(body)
            case "GET", []:
                return self._list({name: values[0] for name, values in parse_qs(parts.query).items()})
            case "GET", [name]:
                return self._known(name)
            case "POST", [name]:
                return await self._release(name, body)
        return Reply(404, {"message": "there is nothing here"})

    # sessions ---------------------------------------------------------------------------------------------------------

    async def _open(self, body: Mapping[str, object]) -> Reply | None:
        if len(self.running) >= self.most:
            self.num_full += 1
            self._note_change()
            return Reply(429, {"message": "too many"}, {"retry-after": "1"})
        carried = body.get("userMetadata", {})
        if len(json.dumps(carried)) >= _MOST_CARRIED or not 60 <= int(str(body["timeout"])) <= 21600:
            return Reply(400, {"message": "that is too much"})
        assert isinstance(carried, dict)
        fault = self._faults(self.num_asked)
        self.num_asked += 1
        self._note_change()
        match fault:
            case Fault.REFUSED:
                return Reply(503, {"message": "not now"})
            case Fault.SLOW:
                await anyio.sleep(self._slow_s)
            case Fault.DOUBLED:
                await self._opened(carried, Fault.NONE, body)
        session, url = await self._opened(carried, fault, body)
        if fault is Fault.UNANSWERED:
            return None
        if fault in (Fault.LOST, Fault.EXPIRED):
            self._group.start_soon(self._finish_later, session)
        return Reply(201, _shown(session) | {"connectUrl": url})

    async def _opened(self, carried: Mapping[str, str], fault: Fault, asked: Mapping[str, object]) -> tuple[Session, str]:
        session = Session(f"s{len(self.sessions)}", carried, fault, asked)
        self.sessions[session.id] = session
        self.most_at_once = max(self.most_at_once, len(self.running))
        self._note_change()
        if fault is Fault.UNREACHABLE:
            return session, f"ws://127.0.0.1:{_CLOSED}/{session.id}"
        return session, await self._browsers.start(session)

    async def _finish_later(self, session: Session) -> None:
        await anyio.sleep(self._lives_s)
        await self.finish(session, session.fault)

    def _list(self, query: Mapping[str, str]) -> Reply:
        found = _QUERY.fullmatch(query.get("q", ""))
        assert found is not None
        assert query.get("status") == "RUNNING"
        return Reply(200, [_shown(each) for each in self.running if each.carried.get("run") == found[1]])

    def _known(self, name: str) -> Reply:
        session = self.sessions.get(name)
        return Reply(200, _shown(session)) if session is not None else Reply(404, {"message": "there is none"})

    async def _release(self, name: str, body: Mapping[str, object]) -> Reply:
        assert body["status"] == "REQUEST_RELEASE"
        if (session := self.sessions.get(name)) is None:
            return Reply(404, {"message": "there is none"})
        if session.fault is Fault.NOT_ENDED and not session.num_refused:
            session.num_refused += 1
            return Reply(500, {"message": "not now"})
        await self.finish(session, "released")
        return Reply(200, _shown(session))


def _shown(session: Session) -> dict[str, object]:
    status = {"": "RUNNING", "released": "COMPLETED", Fault.EXPIRED: "TIMED_OUT"}.get(session.why_ended, "ERROR")
    opened = datetime.fromtimestamp(session.opened_at, UTC)
    return {
        "id": session.id,
        "status": status,
        "createdAt": opened.isoformat(),
        "expiresAt": datetime.fromtimestamp(session.opened_at + int(str(session.asked["timeout"])), UTC).isoformat(),
        "proxyBytes": 0 if session.is_running else 1_000_000,
        "userMetadata": session.carried,
    }


@asynccontextmanager
async def scripted_provider(browsers: Browsers, **changes: object) -> AsyncIterator[ScriptedProvider]:
    """`changes`: what `ScriptedProvider` takes."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        provider = ScriptedProvider(browsers, group, **changes)  # type: ignore[arg-type]
        provider.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        group.start_soon(listener.serve, provider.serve)
        yield provider
        group.cancel_scope.cancel()
