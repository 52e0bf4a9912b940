"""The trainer on real DeepSpeed and a real tiny model, over the in-memory bus: what tests of its runs share."""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import safetensors.torch
import torch

from bus.memory import MemoryBus
from bus.presence import Status
from schemas.config import EnvConfig, FeederConfig, PolicyConfig
from schemas.messages import Checkpoint, Role
from schemas.training_config import AlgorithmConfig, LogConfig, ObjectiveConfig, TrainerConfig
from tests.builders import RUBRIC, RUN, WORKER
from tests.trainer_world import ALGORITHM, SUBJECTS, PlainModel, judge, play, settings, train_task
from trainer.checkpoints import folder_of
from trainer.engine import TrainEngine, open_engine
from trainer.loop import Trainer
from trainer.metrics import open_metrics
from trainer.model_folder import suppressed_tokens
from trainer.sample_builder import SampleBuilder

BATCH = 6
CLONING = ObjectiveConfig()
REWARDS = (1.0, 1.0, 0.0, 1.0, None, 1.0)
"""Of the episodes of one batch."""


def engines(folder: Path, resume: bool, objective: ObjectiveConfig) -> AbstractContextManager[TrainEngine]:
    return open_engine(folder, settings=replace(settings(), objective=objective), resume=resume)


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
) -> AsyncIterator[Trainer]:
    """Offline when episodes are stored; `version`: the one under which the base model sampled them."""
    with open_metrics(root, run=RUN, algorithm=ALGORITHM, log=LogConfig()) as metrics:
        yield Trainer(
            bus=bus,
            subjects=SUBJECTS,
            rubric=RUBRIC,
            worker=WORKER,
            status=Status(Role.TRAINER, WORKER),
            algorithm=algorithm,
            objective=objective,
            trainer=TrainerConfig(torch_threads=1, keep_checkpoints=2, stored_version=version),
            feeder=FeederConfig(
                mode="offline" if num_stored else "async",
                num_iterations=num_iterations,
                max_staleness=max_staleness,
                num_stored=num_stored,
            ),
            env=EnvConfig(train_tasks_rollout_size=BATCH),
            policy=PolicyConfig(top_k=0, top_p=1.0),
            base=base,
            checkpoints=root / "checkpoints",
            open_engine=partial(engines, objective=objective),
            open_builder=lambda folder: SampleBuilder(folder, cutoff_len=ALGORITHM.cutoff_len),
            metrics=metrics,
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
