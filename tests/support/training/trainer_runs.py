"""The trainer on real DeepSpeed and a real tiny model, over the in-memory bus: what tests of its runs share."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import safetensors.torch
import torch

from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.presence import Status
from schemas.algorithm_config import AlgorithmConfig
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.feeder_config import FeederConfig
from schemas.log_config import LogConfig
from schemas.lora_config import LoraConfig
from schemas.messages import Checkpoint, Role
from schemas.objective_config import ObjectiveConfig
from schemas.policy_config import PolicyConfig
from schemas.trainer_config import TrainerConfig
from tests.builders import WORKER
from tests.support.training.trainer_world import ALGORITHM, SUBJECTS, PlainModel, judge, play, settings, train_task
from trainer.engine.training_engine import TrainEngine
from trainer.engine.training_engine import open_engine as open_deepspeed
from trainer.episodes.sample_builder import SampleBuilder
from trainer.loop import OpenEngine, Trainer
from trainer.model.model_folder import suppressed_tokens
from trainer.tracking.follower import OpenBackend
from trainer.tracking.log import open_tracking
from trainer.tracking.samples import ShowStep
from trainer.versions.checkpoints import folder_of

BATCH = 6
CLONING = ObjectiveConfig()
ALL_WEIGHTS = LoraConfig()
REWARDS = (1.0, 1.0, 0.0, 1.0, None, 1.0)
"""Of the episodes of one batch."""


def engines(
    folder: Path,
    resume: Path | None = None,
    num_updates: int = 0,
    base: Path | None = None,
    objective: ObjectiveConfig = CLONING,
    lora: LoraConfig = ALL_WEIGHTS,
) -> AbstractContextManager[TrainEngine]:
    chosen = settings()
    chosen = replace(chosen, objective=objective, trainer=replace(chosen.trainer, lora=lora))
    return open_deepspeed(folder, settings=chosen, resume=resume, num_updates=num_updates, base=base)


@asynccontextmanager
async def trainer(
    bus: MemoryBus,
    base: Path,
    root: Path,
    *,
    num_iterations: int,
    max_staleness: int = 9,
    num_stored: int = 0,
    version: int = -1,
    objective: ObjectiveConfig = CLONING,
    algorithm: AlgorithmConfig = ALGORITHM,
    config: TrainerConfig | None = None,
    open_engine: OpenEngine | None = None,
    log: LogConfig | None = None,
    show_step: ShowStep | None = None,
    backends: Mapping[str, OpenBackend] | None = None,
    lora: LoraConfig = ALL_WEIGHTS,
) -> AsyncIterator[Trainer]:
    """Offline when episodes are stored; `version`: the one under which the base model sampled them."""
    log = log or LogConfig()
    async with open_tracking(root, bus=bus, subjects=SUBJECTS, log=log, backends=backends, show_step=show_step) as tracking:
        yield Trainer(
            WorkerContext(bus, SUBJECTS, Status(Role.TRAINER, WORKER)),
            Config(
                algorithm_config=algorithm,
                objective_config=objective,
                trainer_config=config or TrainerConfig(torch_threads=1, keep_checkpoints=2, stored_version=version, lora=lora),
                feeder_config=FeederConfig(
                    mode="offline" if num_stored else "async",
                    num_iterations=num_iterations,
                    max_staleness=max_staleness,
                    num_stored=num_stored,
                ),
                env_config=EnvConfig(train_tasks_rollout_size=BATCH),
                policy_config=PolicyConfig(top_k=0, top_p=1.0),
            ),
            base=base,
            checkpoints=root / "checkpoints",
            open_engine=open_engine or partial(engines, base=base, objective=objective, lora=lora),
            open_builder=lambda folder: SampleBuilder(folder, cutoff_len=ALGORITHM.cutoff_len),
            tracking=tracking,
        )


async def played(
    plain: PlainModel, base: Path, num_episodes: int, bus: MemoryBus | None = None, *, version: int = 0
) -> MemoryBus:
    """Judged episodes of one step, all sampled by the base model under the name of `version`."""
    bus = bus or MemoryBus(SUBJECTS)
    suppressed = suppressed_tokens(base)
    for index in range(num_episodes):
        done = await play(bus, train_task(index), plain=plain, suppressed=suppressed, prompt=plain.prompt(), version=version)
        await judge(bus, done, REWARDS[index % BATCH])
    return bus


async def published(bus: MemoryBus) -> list[Checkpoint]:
    records = await bus.history(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"))
    return [record.message for record in records if isinstance(record.message, Checkpoint)]


def weights(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    loaded: dict[str, torch.Tensor] = safetensors.torch.load_file(folder_of(checkpoint.uri) / "model.safetensors")
    return loaded
