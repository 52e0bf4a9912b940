"""Joins a run as one worker of a role: server, feeder, browser, policy, judge, trainer."""

import argparse
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from ops.commands.arguments import add_worker
from ops.commands.execution import guarded, joined_run, worker_name

if TYPE_CHECKING:
    from ops.run.folder import RunFolder
    from schemas.config import Config
    from schemas.ids import WorkerId

EXAMPLE = "millrace {command} --run-dir runs/mine --name {command}-2"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_worker(parser)


def wall_clock(folder: "RunFolder", config: "Config", worker: "WorkerId") -> AbstractContextManager[None]:
    """Open before anything that asks for the time is loaded."""
    if not config.simulation_config.wrong_clocks:
        return nullcontext()
    from ops.simulation.clock import shifted_clock

    return shifted_clock(folder.path, worker)


@guarded
async def run(options: argparse.Namespace) -> int:
    from ops.processes.role_process import is_supervised
    from ops.run.logs import log_path, role_logs
    from schemas.ids import WorkerId, subject_token
    from schemas.messages import Role

    worker = WorkerId(subject_token(worker_name(options), what="worker name"))
    folder, config = joined_run(options)
    with (
        role_logs(
            log_path(folder.logs, options.command, worker),
            run=config.bus_config.run,
            role=options.command,
            worker=worker,
            is_read=not is_supervised(),
            verbose=config.env_config.verbose,
        ),
        wall_clock(folder, config, worker),
    ):
        from ops.roles.running import run_role

        return await run_role(Role(options.command), folder.path, config, worker)
