"""`millrace node`: the roles of one node in the foreground, kept running until they have ended or the node is told to leave.

SIGTERM and Ctrl-C stop everything at once, what is held is handed back. SIGUSR1 drains: the workers finish what they hold, and
then the node leaves, its server last.
"""

import os
import socket
from functools import partial
from pathlib import Path

import anyio

from bus.address_file import say_whereabouts
from bus.background import background
from bus.server_binary import OLDEST_OF_CLUSTERS, find_binary
from ops.console.terminal import Console
from ops.launch.devices import on_devices
from ops.launch.environment_file import read_environment
from ops.launch.node_file import Node, NodeFile, read_node_file
from ops.launch.processes import Given, processes
from ops.processes.restarts import EXIT_FATAL
from ops.processes.service import DRAIN_SIGNAL
from ops.processes.supervisor import RoleSpec, RoleState, RoleStatus, Supervisor, supervise
from ops.run.alone import alone
from ops.run.folder import RunFolder
from schemas.errors import ConfigurationError
from schemas.messages import Role


async def main(path: Path, name: str, *, check: bool) -> int:
    """Returns 0 when every role has ended by itself or the node was drained, 78 when one of them cannot run.

    Raises `ConfigurationError`, also where another process runs this node.
    """
    file = read_node_file(path)
    node = on_devices(file.node(name), os.environ)
    file = file.of(node)
    specs = tuple(processes(file, node, await _given(file, node)))
    console = Console(soft_wrap=True, highlight=False)
    if check:
        for spec in specs:
            console.print(spec.name, markup=False)
        return 0
    folder = RunFolder(Path(file.folder))
    with alone(folder, name):
        if node.is_server and file.address_file is not None:
            say_whereabouts(file.address_file, Path(file.server), socket.gethostname())
        async with (
            supervise(folder.logs, on_change=partial(_say, console)) as supervisor,
            background(partial(_heed_drain, supervisor)),
        ):
            return await _run(supervisor, specs)


async def _given(file: NodeFile, node: Node) -> Given:
    environment = read_environment(Path(file.environment)) if file.environment else {}
    if not node.is_server:
        return Given(server_binary=None, environment=environment)
    if not (Path(file.server) / "nats.conf").is_file():
        raise ConfigurationError(
            f"{file.server} holds no nats.conf: copy there what millrace cluster wrote for {node.name} under servers/"
        )
    binary = await find_binary()
    if binary.version < OLDEST_OF_CLUSTERS:
        wanted = ".".join(map(str, OLDEST_OF_CLUSTERS))
        raise ConfigurationError(f"{binary.path} is {binary.version_text}, and a cluster needs {wanted} or newer")
    return Given(server_binary=binary.path, environment=environment)


async def _run(supervisor: Supervisor, specs: tuple[RoleSpec, ...]) -> int:
    for spec in specs:
        supervisor.start(spec)
    for spec in specs:
        await supervisor.wait(spec.name)
    fatal = any(status.state is RoleState.FATAL for status in supervisor.statuses)
    return EXIT_FATAL if fatal else 0


async def _heed_drain(supervisor: Supervisor) -> None:
    with anyio.open_signal_receiver(DRAIN_SIGNAL) as signals:
        async for _ in signals:
            supervisor.drain()
            workers = [status.name for status in supervisor.statuses if status.role is not Role.SERVER]
            for name in workers:
                await supervisor.wait(name)
            await supervisor.stop()


def _say(console: Console, status: RoleStatus) -> None:
    note = f": {status.note}" if status.note and status.state is not RoleState.RUNNING else ""
    console.print(f"{status.name} {status.state.value}{note}", markup=False)
