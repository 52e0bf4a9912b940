"""What is behind a scripted provider's sessions: doubles that echo lines (`ops.simulation.provided_browser`), or Chromium."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.abc

from tests.support.browsers.other_chromium import other_chromium
from tests.support.browsers.scripted_provider import Fault, Session


class Nothing:
    """For tests in which nobody goes there."""

    async def start(self, session: Session) -> str:
        return f"ws://127.0.0.1:1/{session.id}?apiKey=secret"

    async def stop(self, session: Session) -> None: ...


class Doubles:
    def __init__(self) -> None:
        self.port = 0
        self._sessions: dict[str, Session] = {}
        self._streams: dict[str, anyio.abc.SocketStream] = {}

    async def start(self, session: Session) -> str:
        self._sessions[session.id] = session
        return f"ws://127.0.0.1:{self.port}/{session.id}"

    async def stop(self, session: Session) -> None:
        if (stream := self._streams.pop(session.id, None)) is not None:
            await anyio.aclose_forcefully(stream)

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                heard = await stream.receive()
                session = self._sessions[heard.decode().strip().removeprefix("/")]
                self._streams[session.id] = stream
                while session.is_running or session.fault is Fault.EXPIRED:
                    if session.is_running:
                        await stream.send(b"\n")
                    await stream.receive()


@asynccontextmanager
async def doubles() -> AsyncIterator[Doubles]:
    behind = Doubles()
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        behind.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        group.start_soon(listener.serve, behind.serve)
        yield behind
        group.cancel_scope.cancel()


class Chromiums:
    """A real one for each session."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._folder = folder
        self._arguments = arguments
        self._stacks: dict[str, AsyncExitStack] = {}

    async def start(self, session: Session) -> str:
        stack = self._stacks[session.id] = AsyncExitStack()
        _, address = await stack.enter_async_context(other_chromium(self._folder / session.id, 0, *self._arguments))
        return address

    async def stop(self, session: Session) -> None:
        if (stack := self._stacks.pop(session.id, None)) is not None:
            await stack.aclose()

    async def stop_all(self) -> None:
        for stack in self._stacks.values():
            await stack.aclose()
