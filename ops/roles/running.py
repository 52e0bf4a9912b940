"""Runs one role of a run as a worker, until it is cancelled, drained, or its work is complete."""

import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Literal

import structlog

from bus.background import background
from bus.context import WorkerContext
from bus.presence import presence
from bus.server import address_of, server_process
from ops.processes.alive import show_alive
from ops.processes.service import exit_code, reachable
from ops.roles.gpu_usage import own_gpus
from ops.roles.run_end import WAITING, tell_when_over
from ops.run.folder import RunFolder
from ops.run.joining import RoleRun, join, runs_of, subjects_of
from ops.run.streams import create_streams
from schemas.config import Config
from schemas.errors import BusUnavailable, ConfigurationError
from schemas.extras import require_extra
from schemas.ids import WorkerId
from schemas.messages import Role

_log = structlog.get_logger()
_ON_GPUS = (Role.POLICY, Role.TRAINER)


async def run_role(role: Role, run_dir: Path, config: Config, worker: WorkerId) -> int:
    """Runs one role until it is cancelled, drained, or its work is complete. Returns the exit code."""
    async with background(show_alive):
        return await _run(role, RunFolder(run_dir), config, worker)


async def _run(role: Role, folder: RunFolder, config: Config, worker: WorkerId) -> int:
    if role is Role.SERVER:
        await _serve(folder, config)
        return 0
    if role is Role.TRAINER and int(os.environ.get("RANK", "0")) > 0:
        from ops.roles.deepspeed_trainer import follow_rank_0

        await follow_rank_0(config)
        return 0
    subjects = subjects_of(config)
    async with (
        join(folder, config, role=role.value, name=worker, works=True) as bus,
        presence(bus, subjects, role, worker, own_gpus() if role in _ON_GPUS else dict) as status,
        reachable(bus, subjects, status),
    ):
        _log.info("joined", name=worker)
        context = WorkerContext(bus, subjects, status)
        async with background(*([partial(tell_when_over, context)] if role in WAITING else [])):
            await worker_of(role, config)(RoleRun(folder, config, context))
        _log.info("left", reason="told to" if status.drain.requested else "its work is complete")
    return exit_code(status.drain)


def worker_of(role: Role, config: Config) -> Callable[[RoleRun], Awaitable[None]]:
    """What the role does; nothing of other roles is loaded. Raises `ConfigurationError` for a role without a worker."""
    match role:
        case Role.FEEDER:
            from ops.roles.feeder import feed

            return partial(_until_drained, feed)  # it holds nothing that the streams do not say
        case Role.BROWSER:
            from ops.roles.browser import browse

            return browse
        case Role.POLICY:
            from ops.roles.policy import answer

            return answer
        case Role.JUDGE:
            from ops.roles.judge import judge

            return judge
        case Role.TRAINER:
            return _trainer(config.trainer_config.engine)
        case Role.ARCHIVER:
            require_extra("pyarrow", "archive")
            from ops.roles.archiver import archive

            return partial(_until_drained, archive)  # its next begins behind the last part it wrote
        case _:
            raise ConfigurationError(f"there is no worker for the role {role.value}")


def _trainer(engine: Literal["deepspeed", "simulated"]) -> Callable[[RoleRun], Awaitable[None]]:
    if engine == "simulated":
        from ops.roles.simulated_trainer import train as simulate

        return simulate
    from ops.roles.deepspeed_trainer import train

    return train


async def _until_drained(work: Callable[[RoleRun], Awaitable[None]], run: RoleRun) -> None:
    await run.context.status.drain.unless(partial(work, run))


async def _serve(folder: RunFolder, config: Config) -> None:
    bus = config.bus_config
    if bus.url:
        raise ConfigurationError("bus_config.url names a server of your own: leave it empty to run one here")
    async with server_process(folder.server, runs_of(bus), lasting=True) as server:
        for run in runs_of(bus):
            await create_streams(address_of(folder.server, run=run.run), run)
        raise BusUnavailable(await server.wait_dead())
