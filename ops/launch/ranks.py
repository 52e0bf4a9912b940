"""The ranks of one trainer on one node: started together, ended together.

SIGUSR1 goes to rank 0 alone, which leaves behind its checkpoint and ends the others: a launcher that ends all of them would
cut the iteration off. The exit code is that of rank 0, or of the first other rank that failed.

    python -m ops.launch.ranks 4 -- COMMAND...
"""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

import anyio
from anyio.abc import Process
from anyio.streams.memory import MemoryObjectSendStream

from bus.child_process import start_process
from bus.server.ports import free_port
from ops.processes.restarts import EXIT_RESTART
from ops.processes.role_process import exit_code
from ops.processes.service import DRAIN_SIGNAL

_FOLLOW_S = 60.0
"""In which the other ranks end behind rank 0."""
_GRACE_S = 10.0


def environment_of(rank: int, num_ranks: int, port: int) -> dict[str, str]:
    """What every launcher of torch gives a rank."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(num_ranks),
        "LOCAL_WORLD_SIZE": str(num_ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


async def run_ranks(command: Sequence[str], num_ranks: int) -> int:
    """Returns the exit code; 128 + n after signal n."""
    port = free_port()
    ranks: list[Process] = []
    async with anyio.create_task_group() as group:
        group.start_soon(_pass_on, ranks)
        try:
            for rank in range(num_ranks):
                environment = {**os.environ, **environment_of(rank, num_ranks, port)}
                ranks.append(await start_process(list(command), stdin=None, stdout=None, stderr=None, env=environment))
            code = await _first_that_counts(ranks)
        finally:
            with anyio.CancelScope(shield=True):
                await _end(ranks)
        group.cancel_scope.cancel()
    return exit_code(code)


async def _first_that_counts(ranks: Sequence[Process]) -> int:
    """Returns when rank 0 has ended and the others behind it, or when one has failed."""
    send, receive = anyio.create_memory_object_stream[tuple[int, int]](len(ranks))
    async with anyio.create_task_group() as group, receive:
        for number, process in enumerate(ranks):
            group.start_soon(_await_end, number, process, send)
        for _ in ranks:
            number, code = await receive.receive()
            if number == 0 or code != 0:
                break
        if code in (0, EXIT_RESTART):
            with anyio.move_on_after(_FOLLOW_S):
                for process in ranks:
                    await process.wait()
        group.cancel_scope.cancel()
    return code


async def _await_end(number: int, process: Process, ended: MemoryObjectSendStream[tuple[int, int]]) -> None:
    await ended.send((number, await process.wait()))


async def _end(ranks: Sequence[Process]) -> None:
    _tell(ranks, signal.SIGTERM)
    with anyio.move_on_after(_GRACE_S):
        for process in ranks:
            await process.wait()
    _tell(ranks, signal.SIGKILL)
    for process in ranks:
        await process.wait()


async def _pass_on(ranks: Sequence[Process]) -> None:
    with anyio.open_signal_receiver(DRAIN_SIGNAL, signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            _tell(ranks[:1] if number == DRAIN_SIGNAL else ranks, number)


def _tell(ranks: Sequence[Process], number: signal.Signals) -> None:
    for process in ranks:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.send_signal(number)


def main() -> int:
    count, _, *command = sys.argv[1:]
    return anyio.run(run_ranks, command, int(count))


if __name__ == "__main__":
    sys.exit(main())
