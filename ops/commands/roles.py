"""The commands of the roles: each joins a run as one worker."""

import argparse
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from ops.commands.arguments import add_worker
from ops.commands.execution import guarded, interruptible, joined_run, worker_name
from ops.commands.listing import Commands

if TYPE_CHECKING:
    from ops.run.folder import RunFolder
    from schemas.config import Config
    from schemas.ids import WorkerId

_SUMMARIES = {
    "server": "run the run's own nats-server on this machine",
    "feeder": "admit tasks within the staleness bound",
    "browser": "play episodes in Chromium",
    "policy": "answer observations with the policy",
    "judge": "judge finished trajectories",
    "trainer": "train on judged trajectories and publish checkpoints",
}


_MORE = {"judge": "\nmillrace judge --run-dir runs/mine judge_config.max_calls=20000"}
"""Further examples."""


def add_commands(commands: Commands) -> None:
    for role, summary in _SUMMARIES.items():
        example = f"millrace {role} --run-dir runs/mine --name {role}-2{_MORE.get(role, '')}"
        parser = commands.add(role, summary, serve, example=example)
        add_worker(parser)
        parser.set_defaults(role=role)


def wall_clock(folder: "RunFolder", config: "Config", worker: "WorkerId") -> AbstractContextManager[None]:
    """Open before anything that asks for the time is loaded."""
    if not config.simulation_config.wrong_clocks:
        return nullcontext()
    from ops.simulation.clock import shifted_clock

    return shifted_clock(folder.path, worker)


@guarded
@interruptible
async def serve(options: argparse.Namespace) -> int:
    from ops.run.logs import log_path, role_logs
    from schemas.ids import WorkerId, subject_token
    from schemas.messages import Role

    folder, config = joined_run(options)
    worker = WorkerId(subject_token(worker_name(options), what="worker name"))
    with (
        role_logs(
            log_path(folder.logs, options.role, worker),
            run=config.bus_config.run,
            role=options.role,
            worker=worker,
            verbose=config.env_config.verbose,
        ),
        wall_clock(folder, config, worker),
    ):
        from ops.roles.running import run_role

        return await run_role(Role(options.role), folder.path, config, worker)
