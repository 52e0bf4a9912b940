"""Composition of tracking: the backends that a run's configuration names, and the held-out rounds that are logged."""

import dataclasses
from functools import partial
from pathlib import Path

import structlog

from bus.ports import Bus
from bus.subjects import Subjects
from ops.run.tasks import tasks_of
from schemas.config import Config
from schemas.errors import TaskFileError
from trainer.feeding.curriculum import evaluation_slots, evaluation_versions
from trainer.tracking import Backend
from trainer.tracking.evaluations import Evaluations
from trainer.tracking.follower import OpenBackend
from trainer.tracking.log import Tracking
from trainer.tracking.loggable import loggable

_log = structlog.get_logger()


def backends(config: Config, folder: Path) -> dict[str, OpenBackend]:
    """By name. Raises `ConfigurationError` when one is not installed."""
    return {name: _backend(name, config, folder) for name in config.algorithm_config.reporters}


def _backend(name: str, config: Config, folder: Path) -> OpenBackend:
    if name == "tensorboard":
        from trainer.tracking.tensorboard import TensorBoardFiles, require_tensorboard

        require_tensorboard()
        return partial(TensorBoardFiles, folder / "tensorboard")

    from trainer.tracking.wandb_run import WandbRun, require_wandb

    require_wandb()
    shown = loggable(dataclasses.asdict(config))

    def open_wandb(next_version: int) -> Backend:
        return WandbRun(folder, config.bus_config.run, config.log_config, shown)

    return open_wandb


def evaluations(config: Config, bus: Bus, subjects: Subjects, tracking: Tracking) -> Evaluations | None:
    """None when no held-out rounds are played, or when their size cannot be known here."""
    if config.feeder_config.mode == "offline" or not (versions := evaluation_versions(config.feeder_config)):
        return None
    try:
        tasks = tasks_of(config, config.env_config.test_tasks)
    except TaskFileError as error:
        _log.warning("evaluations_not_logged", reason=str(error))
        return None
    size = len(evaluation_slots(tasks, config.env_config, versions[0]))
    if not size:
        return None
    return Evaluations(bus, subjects, tracking, rubric=config.bus_config.trained_rubric, versions=versions, size=size)
