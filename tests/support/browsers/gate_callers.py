"""Who calls a gate in tests: with its password, for a tunnel."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import anyio
import anyio.abc

from browser_workers.network.gate import Gate


@asynccontextmanager
async def serving(gate: Gate) -> AsyncIterator[Gate]:
    async with anyio.create_task_group() as group:
        await group.start(gate.serve)
        yield gate
        gate.close()


def credentials(gate: Gate) -> bytes:
    return b"Proxy-Authorization: Basic " + base64.b64encode(f"{gate.user}:{gate.password}".encode()) + b"\r\n"


async def ask(gate: Gate, host: str, port: int) -> tuple[anyio.abc.SocketStream, HTTPStatus]:
    """A tunnel, and what the gate says to it."""
    stream = await anyio.connect_tcp("127.0.0.1", gate.port)
    where = f"{host}:{port}".encode()
    await stream.send(b"CONNECT " + where + b" HTTP/1.1\r\nHost: " + where + b"\r\n" + credentials(gate) + b"\r\n")
    heard = b""
    while b"\r\n\r\n" not in heard:
        heard += await stream.receive(1)
    return stream, HTTPStatus(int(heard.split(b" ")[1]))


async def answer_of(gate: Gate, host: str, port: int) -> HTTPStatus:
    stream, answer = await ask(gate, host, port)
    await stream.aclose()
    return answer
