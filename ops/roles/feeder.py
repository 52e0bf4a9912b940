"""Runs a feeder: admits tasks within the staleness bound."""

from ops.run.joining import Post
from ops.run.tasks import tasks_of
from trainer.feeding.feeder import Feeder


async def feed(post: Post) -> None:
    config, env = post.config, post.config.env_config
    trains, tests = config.feeder_config.mode != "eval", config.feeder_config.tests
    feeder = Feeder(
        bus=post.bus,
        subjects=post.subjects,
        rubric=config.bus_config.trained_rubric,
        worker=post.worker,
        status=post.status,
        feeder=config.feeder_config,
        env=env,
        objective=config.objective_config,
        train_tasks=tasks_of(config, env.train_tasks) if trains else (),
        test_tasks=tasks_of(config, env.test_tasks) if tests else (),
    )
    await feeder.run()
