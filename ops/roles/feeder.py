"""Runs a feeder: admits tasks within the staleness bound."""

from functools import partial

import anyio.to_thread

from ops.run.joining import RoleRun
from ops.run.tasks import tasks_of
from trainer.feeding.feeder import Feeder


async def feed(run: RoleRun) -> None:
    # Of many tasks that takes seconds, in which heartbeats go on; a feeder that is told to stop in between leaves it there.
    feeder = await anyio.to_thread.run_sync(partial(feeder_of, run), abandon_on_cancel=True)
    await feeder.run()


def feeder_of(run: RoleRun) -> Feeder:
    """Reads the task files. Raises `TaskFileError` when one cannot be read, `ConfigurationError` as `Feeder`."""
    config, env = run.config, run.config.env_config
    trains, tests = config.feeder_config.mode != "eval", config.feeder_config.tests
    return Feeder(
        run.context,
        config,
        train_tasks=tasks_of(config, env.train_tasks) if trains else (),
        test_tasks=tasks_of(config, env.test_tasks) if tests else (),
    )
