"""Judging, tracking and training, seen where a key is consumed."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from bus.presence import Status
from judges.endpoint.addresses import resolve_addresses
from ops.roles.trackers import backends
from schemas.config import Config
from schemas.ids import PolicyVersion, TaskId, WorkerId
from schemas.messages import Role
from tests.support.training.trainer_world import ref
from trainer.engine.schedule import scheduled
from trainer.episodes.replay import Replay
from trainer.episodes.validation import is_held_out
from trainer.updates import Updates

_PATCH = pytest.MonkeyPatch


def asked(question: str, name: str) -> Callable[[Config], object]:
    return lambda config: getattr(resolve_addresses(config.openai_config)[question], name)


def tracked_as(name: str) -> Callable[[Config], object]:
    """What wandb is told of one parameter when the run is opened as the trainer does it."""

    def told(config: Config) -> object:
        found: dict[str, Any] = {}
        wandb = ModuleType("wandb")
        wandb.init = lambda **parts: found.update(parts) or SimpleNamespace(define_metric=lambda *_, **__: None)  # type: ignore[attr-defined]
        wandb.Settings = dict  # type: ignore[attr-defined]
        with _PATCH.context() as patch:
            patch.setitem(sys.modules, "wandb", wandb)
            patch.setenv("WANDB_API_KEY", "key-a")
            patch.setenv("OTHER_KEY", "key-b")
            patch.setenv("WANDB_DATA_DIR", "")
            patch.setenv("WANDB_CACHE_DIR", "")
            backends(config, Path(config.save_path))["wandb"](0)
        return found["settings"]["api_key"] if name == "api_key" else found[name]

    return told


def trackers(config: Config) -> object:
    with _PATCH.context() as patch:
        patch.setitem(sys.modules, "wandb", ModuleType("wandb"))
        return sorted(backends(config, Path(config.save_path)))


def steps_drawn(config: Config) -> object:
    replay = Replay(config.algorithm_config)
    replay.add(0, [(ref(step), "") for step in range(3000)])
    return len(replay.draw(0, 0))


def newer_share(config: Config) -> object:
    """How often the newer of two steps is drawn, to a tenth: versions 0 and 2."""
    replay = Replay(replace(config.algorithm_config, positive_samples_to_train=1))
    replay.add(0, [(ref(0), "")])
    replay.add(2, [(ref(2), "")])
    return round(sum(replay.draw(seed, 2) == [ref(2)] for seed in range(1500)) / 1500, 1)


def held_out(config: Config) -> object:
    names = [TaskId(f"t{index}") for index in range(1000)]
    return sum(is_held_out(name, config.algorithm_config.val_split_ratio) for name in names) > 0


def engine_says(figure: Callable[[Any], object]) -> Callable[[Config], object]:
    """A figure of the training engine on one device, without its models."""
    from trainer.engine.training_engine import TrainEngine

    class Bare(TrainEngine):
        num_updates = 0

        def __init__(self, config: Config) -> None:
            self._algorithm = config.algorithm_config
            self._ranks = cast(Any, SimpleNamespace(size=1))

        def _step(self, items: Any, rate: float, num_updates: int, *, critic: bool) -> Any:
            return rate

    return lambda config: figure(Bare(config))


def rate_after(num_updates: int) -> Callable[[Config], object]:
    def rate(config: Config) -> object:
        return scheduled(1.0, num_updates=num_updates, algorithm=config.algorithm_config)

    return rate


def deepspeed(figure: Callable[[Any], object]) -> Callable[[Config], object]:
    """What DeepSpeed gets."""

    def given(config: Config) -> object:
        from ops.roles.deepspeed_trainer import engine_settings

        settings = engine_settings(config)
        return figure(settings.deepspeed.completed(settings.algorithm))

    return given


def optimizer_steps(config: Config) -> object:
    """Of one iteration over ten samples, all of which make one step."""

    class Store:
        async def samples(self, refs: Any) -> Any:
            return refs

    async def trained() -> int:
        sizes: list[int] = []
        engine: Any = SimpleNamespace(step_size=10)
        epochs = config.algorithm_config.num_train_epochs

        async def here(body: Callable[[], Any]) -> Any:
            return body()

        def step(items: Any) -> Any:
            from trainer.ports import StepResult

            sizes.append(len(items))
            return StepResult(0.0, 0.0, 0.0, 1)

        updates = Updates(
            engine, cast(Any, Store()), cast(Any, here), Status(Role.TRAINER, WorkerId("t")), num_epochs=epochs, seed=0
        )
        await updates.run(
            [ref(index) for index in range(10)], cast(Any, lambda step: list(step.samples)), PolicyVersion(0), step
        )
        return len(sizes)

    return anyio.run(trained)
