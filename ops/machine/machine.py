"""`millrace run`: serves a run, keeps its roles running until its work is done, and shows how it stands.

Whatever is killed: the same command goes on behind what the run's streams hold.
"""

import shlex
from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from ops.console.terminal import Console
from ops.machine.display import MachineDisplay
from ops.monitor.dashboard import dashboard
from ops.monitor.run_watch import watching
from ops.processes.local_roles import local_roles
from ops.processes.role_process import said_command, typed
from ops.processes.supervisor import RoleSpec
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from schemas.config import Config
from schemas.messages import Role

_ENDING = frozenset({Role.FEEDER, Role.TRAINER})
"""Whose ends, of those that there are, are the run's: behind the last version the trainer has lines to write."""


async def run_here(folder: RunFolder, config: Config, specs: Sequence[RoleSpec]) -> int:
    """Returns 0 when the run's work is done.

    Raises:
        ConfigurationError: a role cannot run.
    """
    console = Console()
    async with local_roles(folder) as roles:
        await roles.serve(config)
        async with (
            join(folder, config, role=Role.MONITOR.value, name="run") as bus,
            watching(bus, subjects_of(config), config.bus_config) as watch,
        ):
            display = MachineDisplay(config, roles.statuses, watch)
            async with dashboard(display.view, console):
                for spec in specs:
                    roles.supervisor.start(spec)
                for role in _ENDING & {spec.role for spec in specs}:
                    await roles.finished(role)
                await roles.supervisor.stop(*(spec.name for spec in specs))
                display.done = True
    console.print(farewell(folder), soft_wrap=True, highlight=False)
    return 0


def farewell(folder: RunFolder) -> str:
    path, millrace = folder.path, said_command()
    return (
        f"done: {path}\n"
        f"  {millrace} report {path}   what it came to, and where it fails\n"
        f"  {millrace} view {path}     every episode, step by step, in your browser"
    )


def outline(config: Config, specs: Sequence[RoleSpec]) -> Table:
    """What would be started."""
    table = Table("process", "GPUs", "command")
    if not config.bus_config.url:
        table.add_row("server-1", "", "nats-server, with keys and streams of this run's own")
    for spec in specs:
        table.add_row(spec.name, spec.env.get("CUDA_VISIBLE_DEVICES", ""), escape(shlex.join(typed(spec.argv))))
    return table
