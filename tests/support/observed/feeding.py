"""What is played, seen where a key is consumed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from bus.context import WorkerContext
from bus.presence import Status
from bus.subjects import Subjects
from ops.roles.feeder import feed
from ops.run.folder import RunFolder
from ops.run.joining import RoleRun
from schemas.config import Config
from schemas.ids import PolicyVersion, TaskId, WorkerId
from schemas.messages import Role, Split
from tests import builders
from trainer.feeding.curriculum import Slot, evaluation_slots, task_of
from trainer.feeding.samplers import sampler_of
from trainer.feeding.stragglers import StragglerClock
from trainer.feeding.task_files import TaskSpec
from trainer.feeding.training_plan import TrainingPlan

SUBJECTS = Subjects(builders.RUN)
_PATCH = pytest.MonkeyPatch


def specs(count: int = 12) -> tuple[TaskSpec, ...]:
    """Difficulties 1 to 9, again and again."""
    return tuple(
        TaskSpec(
            task=TaskId(f"t{index}"),
            instruction="do it",
            website=f"https://site{index}.example/",
            domain="d",
            subdomain="s",
            difficulty=index % 9 + 1,
            facts=(),
            reference_answer=None,
        )
        for index in range(count)
    )


def fed(split: Split) -> Callable[[Config], object]:
    """Instructions that the feeder of a run is given."""

    def given(config: Config) -> object:
        found: dict[str, Any] = {}

        class Taken:
            def __init__(self, _context: object, _config: object, **parts: Any) -> None:
                found.update(parts)

            async def run(self) -> None:
                return

        status = Status(Role.FEEDER, WorkerId("f"))
        run = RoleRun(RunFolder(Path(config.save_path)), config, WorkerContext(cast(Any, None), SUBJECTS, status))
        with _PATCH.context() as patch:
            patch.setattr("ops.roles.feeder.Feeder", Taken)
            anyio.run(feed, run)
        tasks = found["train_tasks" if split is Split.TRAIN else "test_tasks"]
        return [spec.instruction for spec in tasks]

    return given


def played_split(config: Config) -> object:
    """Of which splits the feeder is given tasks."""
    return [split.value for split in Split if fed(split)(config)]


def step_cap(split: Split, difficulty: int) -> Callable[[Config], object]:
    return lambda config: _task(config, split, difficulty).max_steps


def episode_time(config: Config) -> object:
    return _task(config, Split.TRAIN, 1).timeout_s


def _task(config: Config, split: Split, difficulty: int) -> Any:
    slot = Slot(specs()[difficulty - 1], 0, 0)
    return task_of(
        slot, run=builders.RUN, split=split, env=config.env_config, version=PolicyVersion(0), feeder=config.feeder_config
    )


def admitted_at_first(config: Config) -> object:
    """Of a synchronous run, training episodes before any version is trained."""
    feeder = replace(config.feeder_config, mode="sync", max_concurrent=10**6)
    plan = TrainingPlan(feeder, config.env_config, config.objective_config, specs(), {})
    return plan.allowed(0)


def evaluated(config: Config) -> object:
    return len(evaluation_slots(specs(), config.env_config, PolicyVersion(0)))


def sampler(config: Config) -> object:
    return type(sampler_of(config.env_config, specs(), num_members=1, seed=0)).__name__


def cancels_stragglers(*, ended: int, after_s: float) -> Callable[[Config], object]:
    """Of a batch of 1,024, so long after so many have ended."""

    def cancelled(config: Config) -> object:
        clock = StragglerClock(config.env_config)
        clock.due(ended, 0.0)
        return clock.due(ended, after_s)

    return cancelled
