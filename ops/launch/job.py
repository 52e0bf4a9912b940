"""One node's part in a training job that several nodes have: its ranks run while all nodes are there.

The first node leads: when all are ready it names a generation and an address, and everybody's ranks meet there. When a rank
ends, or a node is no longer heard, all ranks of that generation end, and the next begins when all are ready again; rank 0 then
goes on from the newest version, as after any kill. A node that was told to leave takes no part in another generation. Nodes
meet on the bus alone; only ranks speak to each other directly.

    python -m ops.launch.job NODE_FILE NODE -- COMMAND...
"""

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from socket import AddressFamily

import anyio
import psutil
import structlog

from bus.background import background
from bus.ports import Bus
from bus.server.ports import held_port
from bus.subjects import Subjects
from ops.config.loading import load_config
from ops.launch.job_membership import JobMembership
from ops.launch.node_file import NodeFile, read_node_file
from ops.launch.ranks import Place, local_ranks
from ops.processes.interruptible import run
from ops.processes.restarts import EXIT_RESTART, Restart, Restarts
from ops.processes.service import DRAIN_SIGNAL
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.logs import log_path, role_logs
from schemas.errors import ConfigurationError
from schemas.ids import WorkerId
from schemas.messages import JobState, Role

_JOIN_S, _FOLLOW_S = 60.0, 60.0
"""In which all nodes' ranks are begun, and end behind rank 0."""
_log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class Job:
    """As the node file has it."""

    nodes: tuple[str, ...]
    """Those with ranks; the first has rank 0."""
    num_ranks: tuple[int, ...]

    @classmethod
    def of(cls, file: NodeFile) -> "Job":
        shares = {node.name: node.share(Role.TRAINER) for node in file.trainer_nodes}
        return cls(nodes=tuple(shares), num_ranks=tuple(share.count for share in shares.values() if share is not None))


@dataclass(frozen=True, kw_only=True)
class Interface:
    """Of this node, in the ranks' network."""

    name: str
    address: str

    @classmethod
    def within(cls, network: str) -> "Interface":
        """Raises `ConfigurationError` unless this node has one address there."""
        found = [
            cls(name=name, address=each.address)
            for name, addresses in psutil.net_if_addrs().items()
            for each in addresses
            if each.family is AddressFamily.AF_INET and ip_address(each.address) in ip_network(network)
        ]
        if len(found) != 1:
            has = ", ".join(f"{each.name} {each.address}" for each in found) or "none"
            raise ConfigurationError(f"trainer_network is {network}, where this node has to have one address: it has {has}")
        return found[0]


class JobNodeLoop:
    """Begins, ends and begins again this node's ranks."""

    def __init__(self, job: Job, node: str, membership: JobMembership, command: Sequence[str], interface: Interface) -> None:
        self._membership = membership
        self._command = command
        self._interface = interface
        self._job = job
        self._index = job.nodes.index(node)
        self._others = tuple(name for name in job.nodes if name != node)

    async def run(self) -> int:
        """The exit code: of rank 0 once the job is over, of a rank of this node that failed, or 0 if told to leave before."""
        while True:
            before = self._membership.newest_generation
            await self._membership.say(state=JobState.READY, address="")
            _log.info("job_waits", nodes=self._others)
            code = await (self._lead() if self._index == 0 else self._follow(before))
            if code is not None:
                return code

    # the first node ---------------------------------------------------------------------------------------------------

    async def _lead(self) -> int | None:
        """One generation. None: another node was lost in it."""
        await self._membership.until(lambda: all(self._state(name) is JobState.READY for name in self._others))
        generation = self._membership.newest_generation + 1
        with held_port(self._interface.address) as port:
            place = self._place(self._interface.address, port)
            async with local_ranks(self._command, place, (DRAIN_SIGNAL,)) as ranks:
                await self._membership.say(state=JobState.RUNNING, generation=generation, address=f"{place.address}:{port}")
                _log.info("job_begins", generation=generation, ranks=place.num_ranks)
                code = await _first(ranks.ended, lambda: self._lost(generation))
        if code is None and ranks.told_to_leave:
            code = 0
        if code is not None and (code == EXIT_RESTART or not isinstance(Restarts().after_exit(code, 0.0)[1], Restart)):
            await self._finish(code)
        return code

    async def _lost(self, generation: int) -> None:
        """Returns when a node no longer runs, or did not begin in time."""

        def is_settled() -> bool:
            return bool(self._gone(generation)) or all(self._runs(name, generation) for name in self._others)

        with anyio.move_on_after(_JOIN_S) as joining:
            await self._membership.until(is_settled)
        if not joining.cancelled_caught:
            await self._membership.until(lambda: bool(self._gone(generation)))
        missing = [name for name in self._others if not self._runs(name, generation)]
        _log.error("job_node_lost", generation=generation, nodes=missing)

    def _gone(self, generation: int) -> list[str]:
        """Who is not heard, or has run in it and does not any more."""
        said = {name: self._membership.of(name) for name in self._others}
        return [
            name
            for name, word in said.items()
            if word is None or (word.generation == generation and word.state is not JobState.RUNNING)
        ]

    async def _finish(self, code: int) -> None:
        """Returns when nobody's ranks run, or nobody is heard."""
        await self._membership.say(state=JobState.FINISHED, exit_code=code)
        with anyio.move_on_after(_FOLLOW_S):
            await self._membership.until(lambda: all(self._state(name) is not JobState.RUNNING for name in self._others))

    # the others -------------------------------------------------------------------------------------------------------

    async def _follow(self, before: int) -> int | None:
        """One generation, behind the newest `before` this node was ready. None: the first node was lost in it."""
        leader, membership = self._job.nodes[0], self._membership
        await membership.until(lambda: self._running(leader) > before)
        word = membership.of(leader)
        assert word is not None
        generation, (address, _, port) = word.generation, word.address.partition(":")
        async with local_ranks(self._command, self._place(address, int(port)), (DRAIN_SIGNAL,)) as ranks:
            await membership.say(state=JobState.RUNNING, generation=generation)
            code = await _first(ranks.ended, lambda: membership.until(lambda: not self._runs(leader, generation)))
            if code is not None and code != 0:
                return code
            # However long rank 0 takes behind ours, for its last checkpoint, say.
            await membership.until(lambda: not self._runs(leader, generation))
            over = membership.of(leader)
            if over is None or over.state is not JobState.FINISHED or over.generation != generation:
                return 0 if ranks.told_to_leave else None
            if over.exit_code in (0, EXIT_RESTART):
                with anyio.move_on_after(_FOLLOW_S):
                    await ranks.ended()
        return over.exit_code

    # both -------------------------------------------------------------------------------------------------------------

    def _state(self, node: str) -> JobState | None:
        word = self._membership.of(node)
        return word.state if word is not None else None

    def _running(self, node: str) -> int:
        """The generation in which it runs; 0: in none."""
        word = self._membership.of(node)
        return word.generation if word is not None and word.state is JobState.RUNNING else 0

    def _runs(self, node: str, generation: int) -> bool:
        return self._running(node) == generation

    def _place(self, address: str, port: int) -> Place:
        return Place(
            num_local=self._job.num_ranks[self._index],
            address=address,
            port=port,
            interface=self._interface.name,
            first=sum(self._job.num_ranks[: self._index]),
            num_ranks=sum(self._job.num_ranks),
        )


async def _first(result: Callable[[], Awaitable[int]], end: Callable[[], Awaitable[None]]) -> int | None:
    """What `result` comes to; None where `end` returns before."""
    found: list[int] = []
    async with anyio.create_task_group() as group:

        async def wait() -> None:
            found.append(await result())
            group.cancel_scope.cancel()

        async def give_up() -> None:
            await end()
            group.cancel_scope.cancel()

        group.start_soon(wait)
        group.start_soon(give_up)
    return found[0] if found else None


async def run_job(bus: Bus, subjects: Subjects, job: Job, node: str, command: Sequence[str], interface: Interface) -> int:
    """This node's part, until the job is over or one of its ranks fails. Returns the exit code."""
    membership = JobMembership(bus, subjects, node)
    await membership.begin()
    async with background(membership.run):
        try:
            return await JobNodeLoop(job, node, membership, command, interface).run()
        finally:
            await membership.leave()


async def _main(path: Path, name: str, command: Sequence[str]) -> int:
    file = read_node_file(path)
    file = file.of(file.node(name))
    job, interface = Job.of(file), Interface.within(file.trainer_network)
    folder = RunFolder(Path(file.folder))
    config = load_config(file.recipe, [*file.bus], lambda _: folder.prompt_texts())
    worker = WorkerId(f"{name}-job")
    with role_logs(log_path(folder.logs, Role.TRAINER.value, worker), run=file.run, role=Role.TRAINER.value, worker=worker):
        async with join(folder, config, role=Role.TRAINER.value, name=worker) as bus:
            return await run_job(bus, subjects_of(config), job, name, command, interface)


def main() -> int:
    path, name, _, *command = sys.argv[1:]
    return run(lambda: _main(Path(path), name, command))


if __name__ == "__main__":
    sys.exit(main())
