"""Runs the training job on DeepSpeed: rank 0 is the trainer, every other rank follows it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import anyio.to_thread

from ops.roles.gpu_locks import alone_on_own
from ops.roles.trainer import train_with
from ops.run.base_models import reference_model, starting_model
from ops.run.joining import RoleRun
from schemas.config import Config
from schemas.errors import ConfigurationError
from trainer.engine.deepspeed_config import read_deepspeed_config
from trainer.engine.settings import EngineSettings
from trainer.engine.training_engine import TrainEngine, WhileLoading, dismiss_ranks, follow, open_engine
from trainer.episodes.sample_builder import SampleBuilder
from trainer.model.supported import require_trainable

_DEEPSPEED = Path(__file__).parent.parent / "config" / "deepspeed"


def engine_settings(config: Config) -> EngineSettings:
    """A DeepSpeed file is named relative to the shipped ones, or by a path of the user's own.

    Raises:
        ConfigurationError: it cannot be used, or asks for another precision than the policies'.
    """
    name = config.algorithm_config.deepspeed_config_filename
    file = _DEEPSPEED / name if (_DEEPSPEED / name).is_file() else Path(name)
    deepspeed = read_deepspeed_config(file)
    if deepspeed.dtype == "float16" and config.policy_config.dtype != "float16":
        raise ConfigurationError(
            f"{file} trains in fp16, and policies would answer in another precision: write policy_config.dtype: float16"
        )
    return EngineSettings(
        deepspeed, config.algorithm_config, config.trainer_config, config.objective_config, config.bus_config.run
    )


async def _settings_here(config: Config) -> EngineSettings:
    """With the folder of the reference on this machine. Raises `ConfigurationError`."""
    settings = engine_settings(config)
    reference = await anyio.to_thread.run_sync(reference_model, settings.objective, abandon_on_cancel=True)
    if reference is None:
        return settings
    require_trainable(reference)
    return replace(settings, objective=replace(settings.objective, reference_model=str(reference)))


async def train(run: RoleRun) -> None:
    """Runs until all versions are published."""
    config, settings = run.config, await _settings_here(run.config)
    base = await anyio.to_thread.run_sync(starting_model, config.policy_config, abandon_on_cancel=True)
    while_loading = _alone_on_own_gpu()

    @contextmanager
    def open_(folder: Path, resume: Path | None, num_updates: int) -> Iterator[TrainEngine]:
        with open_engine(
            folder, settings=settings, resume=resume, num_updates=num_updates, base=base, while_loading=while_loading
        ) as engine:
            yield engine

    def open_builder(folder: Path) -> SampleBuilder:
        return SampleBuilder(folder, cutoff_len=config.algorithm_config.cutoff_len)

    try:
        await train_with(run, open_, open_builder, base=base)
    finally:
        dismiss_ranks()


async def follow_rank_0(config: Config) -> None:
    """The life of a rank other than 0: it never speaks to the bus."""
    settings, while_loading = await _settings_here(config), _alone_on_own_gpu()
    await anyio.to_thread.run_sync(lambda: follow(settings=settings, while_loading=while_loading), abandon_on_cancel=True)


def _alone_on_own_gpu() -> WhileLoading:
    """On the one that `trainer.engine.ranks` takes."""
    local = int(os.environ.get("LOCAL_RANK", "0"))
    return alone_on_own(slice(local, local + 1))
