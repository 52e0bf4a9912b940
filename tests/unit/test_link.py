"""A connection that never comes about leaves nothing behind."""

import anyio
import anyio.abc
import pytest

from bus.address import ServerAddress
from bus.jetstream.link import open_link

pytestmark = pytest.mark.anyio


async def test_a_cancelled_attempt_closes_its_socket() -> None:
    accepted, closed = anyio.Event(), anyio.Event()

    async def say_nothing(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            accepted.set()
            with pytest.raises(anyio.EndOfStream):
                await stream.receive()
            closed.set()

    async def connect(address: ServerAddress) -> None:
        async with open_link(address, "test"):
            pytest.fail("nobody greeted us")

    with anyio.fail_after(10):
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
            port = listener.extra(anyio.abc.SocketAttribute.local_port)
            group.start_soon(listener.serve, say_nothing)
            async with anyio.create_task_group() as attempt:
                attempt.start_soon(connect, ServerAddress(f"nats://127.0.0.1:{port}"))
                await accepted.wait()
                attempt.cancel_scope.cancel()
            await closed.wait()
            group.cancel_scope.cancel()
