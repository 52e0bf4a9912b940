"""Composition of the trainer's loop, whatever its heavy parts are. Loads without torch."""

from pathlib import Path
from typing import TYPE_CHECKING

from trainer.loop import OpenBuilder, OpenEngine, Trainer
from trainer.metrics import open_metrics
from trainer.weight_publishing import WeightPublisher

if TYPE_CHECKING:
    from ops.roles import Post


async def train_with(post: "Post", open_engine: OpenEngine, open_builder: OpenBuilder, *, base: Path) -> None:
    """Runs until all versions are published; `base` is the folder of version 0."""
    config, bus = post.config, post.config.bus_config
    with open_metrics(
        post.folder.path, run=post.subjects.run, algorithm=config.algorithm_config, log=config.log_config
    ) as log:
        trainer = Trainer(
            bus=post.bus,
            subjects=post.subjects,
            rubric=bus.trained_rubric,
            worker=post.worker,
            status=post.status,
            algorithm=config.algorithm_config,
            objective=config.objective_config,
            trainer=config.trainer_config,
            feeder=config.feeder_config,
            env=config.env_config,
            policy=config.policy_config,
            base=base,
            checkpoints=post.folder.checkpoints,
            open_engine=open_engine,
            open_builder=open_builder,
            metrics=log,
            publisher=WeightPublisher(post.bus, post.subjects, bus) if bus.weights == "bus" else None,
        )
        await trainer.run()
