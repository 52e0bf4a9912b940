"""Builds the trainer's loop around any engine, with tracking and publishing, and runs it. Loads without torch."""

from pathlib import Path

import anyio

from bus.background import background
from ops.config.agreement import require_agreement
from ops.roles.shown_step import show_step
from ops.roles.trackers import backends, evaluations
from ops.run.joining import RoleRun
from trainer.loop import OpenBuilder, OpenEngine, Trainer
from trainer.tracking.log import Tracking, open_tracking
from trainer.versions.weight_publishing import WeightPublisher


async def train_with(run: RoleRun, open_engine: OpenEngine, open_builder: OpenBuilder, *, base: Path) -> None:
    """Runs until all versions are published, and the held-out rounds of them are logged; `base`: the folder of version 0."""
    config, folder, bus = run.config, run.folder.path, run.config.bus_config
    require_agreement(config)
    async with open_tracking(
        folder,
        bus=run.context.bus,
        subjects=run.context.subjects,
        log=config.log_config,
        backends=backends(config, folder),
        show_step=show_step,
    ) as tracking:
        trainer = Trainer(
            run.context,
            config,
            base=base,
            checkpoints=run.folder.checkpoints,
            open_engine=open_engine,
            open_builder=open_builder,
            tracking=tracking,
            publisher=WeightPublisher(run.context.bus, run.context.subjects, bus) if bus.weights == "bus" else None,
        )
        await _train(run, trainer, tracking)


async def _train(run: RoleRun, trainer: Trainer, tracking: Tracking) -> None:
    rounds = evaluations(run.config, run.context.bus, run.context.subjects, tracking)
    if rounds is None:
        await trainer.run()
        return
    async with background(rounds.run):
        await trainer.run()
        if run.context.status.drain.requested:
            return
        with anyio.move_on_after(run.config.log_config.last_evaluation_s):
            await rounds.complete()
