"""The proxy of the drills: passes everything on, and can be cut and silenced."""

import asyncio
from collections.abc import AsyncIterator

import anyio
import pytest
from anyio.abc import SocketStream

from ops.drills.proxy import TcpProxy, tcp_proxy
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
async def proxy() -> AsyncIterator[TcpProxy]:
    """In front of a server that answers with what it is sent."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with tcp_proxy(server.sockets[0].getsockname()[1]) as opened:
        yield opened
    server.close()


async def connected(proxy: TcpProxy) -> SocketStream:
    return await anyio.connect_tcp("127.0.0.1", proxy.port)


async def exchanged(stream: SocketStream, data: bytes) -> bytes:
    await stream.send(data)
    received = b""
    while len(received) < len(data):
        received += await stream.receive()
    return received


async def test_everything_is_passed_on(proxy: TcpProxy) -> None:
    async with await connected(proxy) as stream:
        data = bytes(range(256)) * 8192
        async with anyio.create_task_group() as group:
            group.start_soon(stream.send, data)
            received = b""
            while len(received) < len(data):
                received += await stream.receive()

    assert received == data


async def test_a_cut_ends_connections_and_takes_new_ones(proxy: TcpProxy) -> None:
    async with await connected(proxy) as stream:
        assert await exchanged(stream, b"before") == b"before"
        proxy.cut()
        with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await stream.receive()

    async with await connected(proxy) as stream:
        assert await exchanged(stream, b"after") == b"after"


async def test_silence_holds_back_until_it_is_over(proxy: TcpProxy) -> None:
    async with await connected(proxy) as stream:
        assert await exchanged(stream, b"before") == b"before"
        proxy.silence()
        await stream.send(b"during")
        with anyio.move_on_after(0.2) as waited:
            await stream.receive()
        assert waited.cancelled_caught
        proxy.resume()
        with anyio.fail_after(HANGS_S):
            assert await stream.receive() == b"during"
