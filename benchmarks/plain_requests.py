"""The baseline of the bus: the same screenshots and answers as plain NATS requests. Nothing is stored, nothing survives a
kill.

python -m benchmarks.plain_requests FOLDER     answers requests on the server of this folder, until it is killed
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import psutil
from anyio.abc import Process
from nats.aio.client import Client
from nats.aio.msg import Msg

from bus.codec import encode
from bus.server import address_of
from schemas.ids import EpisodeId, PolicyVersion
from schemas.messages import Action, ActionKind, StepRequest, VersionSpan

_SUBJECT = "plain.request"
_TIMEOUT_S = 60.0
_NUM_PROMPT, _NUM_COMPLETION = 1500, 100


def answer(episode: EpisodeId, attempt: int, step: int) -> StepRequest:
    """An answer of the usual size."""
    return StepRequest(
        episode=episode,
        attempt=attempt,
        step=step,
        action=Action(kind=ActionKind.CLICK, point=(1.0, 2.0)),
        parsed=True,
        response="click",
        prompt_tokens=tuple(range(_NUM_PROMPT)),
        completion_tokens=tuple(range(_NUM_COMPLETION)),
        logprobs=(-0.5,) * _NUM_COMPLETION,
        versions=(VersionSpan(start=0, end=_NUM_COMPLETION, version=PolicyVersion(0)),),
    )


class PlainClient:
    """Asks the answering process."""

    def __init__(self, client: Client, process: Process) -> None:
        self._client = client
        self.answering = psutil.Process(process.pid)

    async def ask(self, screenshot: bytes) -> None:
        await self._client.request(_SUBJECT, screenshot, timeout=_TIMEOUT_S)


@asynccontextmanager
async def plain_requests(folder: Path) -> AsyncIterator[PlainClient]:
    """A client of a process of its own that answers, on the server that runs in `folder`."""
    command = [sys.executable, "-m", "benchmarks.plain_requests", str(folder)]
    async with await anyio.open_process(command, stderr=None) as process:
        assert process.stdout is not None
        await process.stdout.receive()
        client = await _connected(folder)
        try:
            yield PlainClient(client, process)
        finally:
            await client.close()
            process.kill()


async def _connected(folder: Path) -> Client:
    address = address_of(folder)
    client = Client()
    await client.connect(address.url, nkeys_seed_str=address.nkey_seed, inbox_prefix=address.inbox_prefix.encode())
    return client


async def _serve(folder: Path) -> None:
    client = await _connected(folder)

    async def respond(message: Msg) -> None:
        await message.respond(encode(answer(EpisodeId("episode"), 1, 0)))

    await client.subscribe(_SUBJECT, cb=respond)
    await client.flush()
    print("ready", flush=True)
    await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(_serve, Path(sys.argv[1]), backend_options={"use_uvloop": True})
