"""Runs a feeder: admits tasks within the staleness bound."""

from ops.run.joining import RoleRun
from ops.run.tasks import tasks_of
from trainer.feeding.feeder import Feeder


async def feed(run: RoleRun) -> None:
    config, env = run.config, run.config.env_config
    trains, tests = config.feeder_config.mode != "eval", config.feeder_config.tests
    feeder = Feeder(
        run.context,
        config,
        train_tasks=tasks_of(config, env.train_tasks) if trains else (),
        test_tasks=tasks_of(config, env.test_tasks) if tests else (),
    )
    await feeder.run()
