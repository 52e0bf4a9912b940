"""The ranks of one trainer on one node: started together, ended together.

SIGUSR1 goes to rank 0 alone, which leaves behind its checkpoint and ends the others: a launcher that ends all of them would
cut the iteration off. The exit code is that of rank 0, or of the first other rank that failed.

    python -m ops.launch.ranks 4 -- COMMAND...
"""

import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

import anyio
from anyio.abc import Process

from bus.background import background
from bus.child_process import start_process
from bus.server.ports import held_port
from ops.processes.restarts import EXIT_RESTART
from ops.processes.role_process import exit_code
from ops.processes.service import DRAIN_SIGNAL

_FOLLOW_S = 60.0
"""In which the other ranks end behind rank 0."""
_GRACE_S = 10.0


@dataclass(frozen=True, kw_only=True)
class Place:
    """Of one node's ranks in their job."""

    num_local: int
    address: str = "127.0.0.1"
    """Where rank 0 is met, and nowhere else."""
    port: int
    interface: str = "lo"
    """That of the network in which all ranks are."""
    first: int = 0
    """Number of this node's first rank."""
    num_ranks: int
    """On all nodes."""

    def environments(self) -> list[dict[str, str]]:
        """What every launcher of torch gives a rank, for each of this node's."""
        return [
            {
                "RANK": str(self.first + local),
                "LOCAL_RANK": str(local),
                "WORLD_SIZE": str(self.num_ranks),
                "LOCAL_WORLD_SIZE": str(self.num_local),
                "MASTER_ADDR": self.address,
                "MASTER_PORT": str(self.port),
                "GLOO_SOCKET_IFNAME": self.interface,
                # Without the sign NCCL takes every interface whose name begins so.
                "NCCL_SOCKET_IFNAME": f"={self.interface}",
            }
            for local in range(self.num_local)
        ]


class LocalRanks:
    """Built by `local_ranks`."""

    def __init__(self, processes: Sequence[Process], *, has_rank_0: bool) -> None:
        self._processes = processes
        self._has_rank_0 = has_rank_0
        self.told_to_leave = False

    async def ended(self) -> int:
        """Returns when rank 0 has ended and the others behind it, when one has failed, or when all have ended.

        The exit code; 128 + n after signal n.
        """
        running, decisive, over = len(self._processes), list[int](), anyio.Event()

        async def watch(number: int, process: Process) -> None:
            nonlocal running
            code = await process.wait()
            running -= 1
            if code != 0 or (number == 0 and self._has_rank_0) or not running:
                decisive.append(code)
                over.set()

        async with background(*(partial(watch, number, process) for number, process in enumerate(self._processes))):
            await over.wait()
            code = decisive[0]
            if code in (0, EXIT_RESTART):
                with anyio.move_on_after(_FOLLOW_S):
                    for process in self._processes:
                        await process.wait()
        return exit_code(code)

    def tell(self, number: signal.Signals) -> None:
        """Passes a signal on; that to drain is for rank 0."""
        if number != DRAIN_SIGNAL:
            _tell(self._processes, number)
            return
        self.told_to_leave = True
        if self._has_rank_0:
            _tell(self._processes[:1], number)


@asynccontextmanager
async def local_ranks(command: Sequence[str], place: Place, heeded: Sequence[signal.Signals]) -> AsyncIterator[LocalRanks]:
    """Runs one node's ranks while the context is open; they have ended when it is left.

    Args:
        heeded: signals that are passed on.
    """
    processes: list[Process] = []
    ranks = LocalRanks(processes, has_rank_0=place.first == 0)
    async with background(partial(_pass_on, ranks, heeded)):
        try:
            for environment in place.environments():
                given = {**os.environ, **environment}
                processes.append(await start_process(list(command), stdin=None, stdout=None, stderr=None, env=given))
            yield ranks
        finally:
            with anyio.CancelScope(shield=True):
                await _end(processes)


async def run_ranks(command: Sequence[str], num_ranks: int) -> int:
    """All ranks of a job on this node alone. Returns the exit code."""
    with held_port() as port:
        place = Place(num_local=num_ranks, port=port, num_ranks=num_ranks)
        async with local_ranks(command, place, (DRAIN_SIGNAL, signal.SIGTERM, signal.SIGINT)) as ranks:
            return await ranks.ended()


async def _end(ranks: Sequence[Process]) -> None:
    _tell(ranks, signal.SIGTERM)
    with anyio.move_on_after(_GRACE_S):
        for process in ranks:
            await process.wait()
    _tell(ranks, signal.SIGKILL)
    for process in ranks:
        await process.wait()


async def _pass_on(ranks: LocalRanks, heeded: Sequence[signal.Signals]) -> None:
    with anyio.open_signal_receiver(*heeded) as signals:
        async for number in signals:
            ranks.tell(number)


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
