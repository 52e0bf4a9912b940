"""Builds the trainer's loop around any engine, with tracking and publishing, and runs it. Loads without torch."""

from pathlib import Path

import anyio

from bus.companions import companions
from ops.roles.shown_step import show_step
from ops.roles.trackers import backends, evaluations
from ops.run.joining import Post
from trainer.loop import OpenBuilder, OpenEngine, Trainer
from trainer.tracking.log import Tracking, open_tracking
from trainer.versions.weight_publishing import WeightPublisher


async def train_with(post: Post, open_engine: OpenEngine, open_builder: OpenBuilder, *, base: Path) -> None:
    """Runs until all versions are published, and the held-out rounds of them are logged; `base`: the folder of version 0."""
    config, folder, bus = post.config, post.folder.path, post.config.bus_config
    async with open_tracking(
        folder,
        bus=post.bus,
        subjects=post.subjects,
        log=config.log_config,
        backends=backends(config, folder),
        show_step=show_step,
    ) as tracking:
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
            tracking=tracking,
            publisher=WeightPublisher(post.bus, post.subjects, bus) if bus.weights == "bus" else None,
        )
        await _train(post, trainer, tracking)


async def _train(post: Post, trainer: Trainer, tracking: Tracking) -> None:
    rounds = evaluations(post.config, post.bus, post.subjects, tracking)
    if rounds is None:
        await trainer.run()
        return
    async with companions(rounds.run):
        await trainer.run()
        if post.status.drain.requested:
            return
        with anyio.move_on_after(post.config.log_config.last_evaluation_s):
            await rounds.complete()
