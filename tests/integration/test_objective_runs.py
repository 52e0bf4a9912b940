"""Whole runs on real DeepSpeed, one an objective: feeder, episodes of several steps, verdicts, versions of a tiny model."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import numpy as np
import pytest
import torch
from msgspec import structs

from bus.background import background
from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.presence import Status
from bus.settlement import settle
from bus.topology import task_queue
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.env_config import DifficultyShare, EnvConfig
from schemas.feeder_config import FeederConfig
from schemas.messages import Outcome, Role, Split, Task, Trajectory
from schemas.objective_config import ObjectiveConfig
from tests import builders
from tests.builders import WORKER
from tests.deadlines import HANGS_S
from tests.support.agents import tiny_models
from tests.support.training.trainer_runs import ALL_WEIGHTS, BATCH, engines, published, trainer, weights
from tests.support.training.trainer_world import ALGORITHM, SUBJECTS, PlainModel, play, small
from tests.unit.test_samplers import specs
from trainer.engine.training_engine import TrainEngine
from trainer.feeding.feeder import Feeder
from trainer.items import Item
from trainer.model.model_folder import suppressed_tokens
from trainer.ports import StepResult
from trainer.versions.checkpoints import folder_of

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
VERSIONS = 2
GRPO = ObjectiveConfig(adv_estimator="grpo", loss_type="clipped", group_size=3)
ALONE = ObjectiveConfig(adv_estimator="reinforce_plus_plus", loss_type="clipped")
OBJECTIVES = {
    "remax": replace(ALONE, adv_estimator="remax", group_size=2),
    "reinforce_plus_plus_baseline": replace(GRPO, adv_estimator="reinforce_plus_plus_baseline"),
    "reinforce_plus_plus_by_kind": replace(ALONE, adv_estimator="reinforce_plus_plus_by_kind", loss_type="decoupled"),
    "bi_level_gae, rewards by turn": replace(
        ALONE, adv_estimator="bi_level_gae", high_level_gamma=0.9, use_multi_turn_reward=True, bootstrap_cut_off=True
    ),
    "turn_gae": replace(ALONE, adv_estimator="turn_gae", lam=0.9),
    "gigpo": replace(GRPO, adv_estimator="gigpo", gamma=0.9),
    "divergence in the reward": replace(ALONE, kl_reward_coef=0.05),
    "refill": replace(GRPO, dynamic_sampling="refill", max_refill=2.0),
    "constant normaliser": replace(GRPO, length_normaliser="constant", loss_agg_mode="traj-mean-seq-sum"),
    "gspo": replace(GRPO, loss_type="gspo", loss_agg_mode="seq-mean-token-mean"),
    "cispo": replace(GRPO, loss_type="cispo", normalize_advantages=True),
    "reinforce": replace(GRPO, adv_estimator="rloo", loss_type="reinforce"),
    "dppo_tv": replace(GRPO, loss_type="dppo_tv", pass_rate_weights=(0.5, 1.0, 1.5, 1.0, 0.5)),
    "interpolated, rejected": replace(GRPO, loss_type="decoupled", proximal="interpolated", rejection_level="sequence-mean"),
    "success replay": replace(GRPO, loss_type="truncated", success_replay=9, kl_loss_coef=0.01, kl_loss_type="low_var_kl+"),
}
SAMPLERS = ("uniform", "adaptive", "ratio", "frontier")
"""Each objective's in turn."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build(tmp_path_factory.mktemp("model"), seed=1)


@pytest.fixture(scope="module")
def plain(base: Path) -> PlainModel:
    return PlainModel(base)


@pytest.fixture
def items(monkeypatch: pytest.MonkeyPatch) -> list[Item]:
    """Everything that the policy is trained on."""
    found: list[Item] = []
    original = TrainEngine.train

    def recorded(self: TrainEngine, given: Sequence[Item]) -> StepResult:
        found.extend(given)
        return original(self, given)

    monkeypatch.setattr(TrainEngine, "train", recorded)
    return found


class World:
    """Browser, policy and judge at once: the base model plays episodes of one to three steps, of which half succeed."""

    def __init__(self, plain: PlainModel, base: Path) -> None:
        self.bus = MemoryBus(SUBJECTS)
        self._plain = plain
        self._suppressed = suppressed_tokens(base)

    async def play(self) -> None:
        async with self.bus.work(task_queue(SUBJECTS, BusConfig(), Split.TRAIN), prefetch=0) as inbox:
            async for delivery in inbox:
                async with settle(self.bus, delivery, WORKER):
                    assert isinstance(delivery.message, Task)
                    await self._episode(delivery.message)

    async def _episode(self, task: Task) -> None:
        done = await play(
            self.bus,
            task,
            plain=self._plain,
            suppressed=self._suppressed,
            prompt=self._plain.prompt(),
            num_steps=1 + task.index % 3,
        )
        success = task.index % 4 in (1, 2)
        ended = structs.replace(done, outcome=Outcome.DONE if success else Outcome.STEP_LIMIT)
        await self._judge(ended, float(success))

    async def _judge(self, played: Trajectory, reward: float) -> None:
        given = structs.replace(builders.judgement(played, reward), step_rewards=(0.25 * reward,) * played.num_steps)
        await self.bus.append(SUBJECTS.judged, SUBJECTS.judgement(given.split, given.rubric, given.episode), given)


def feeder(bus: MemoryBus, objective: ObjectiveConfig, sampler: str) -> Feeder:
    env = EnvConfig(
        train_tasks_rollout_size=BATCH,
        train_tasks_sampler=sampler,
        difficulty_ratio={"all": DifficultyShare(range=(1, 9), weight=1.0)} if sampler == "ratio" else {},
    )
    config = FeederConfig(num_iterations=VERSIONS, max_staleness=1, evaluate_first=False, evaluate_last=False)
    return Feeder(
        WorkerContext(bus, SUBJECTS, Status(Role.FEEDER, WORKER)),
        Config(feeder_config=config, env_config=env, objective_config=objective),
        train_tasks=specs([1] * 6),
        test_tasks=(),
    )


@pytest.mark.parametrize("name", OBJECTIVES)
async def test_a_run_learns_what_was_worth_more(
    plain: PlainModel, base: Path, tmp_path: Path, items: list[Item], name: str
) -> None:
    objective, sampler = OBJECTIVES[name], SAMPLERS[list(OBJECTIVES).index(name) % len(SAMPLERS)]
    world = World(plain, base)
    once = small(ALGORITHM, num_train_epochs=1, warmup_steps=0)
    async with trainer(
        world.bus, base, tmp_path, num_iterations=VERSIONS, max_staleness=1, objective=objective, algorithm=once
    ) as worker:
        with anyio.fail_after(HANGS_S):
            async with background(world.play), anyio.create_task_group() as group:
                group.start_soon(feeder(world.bus, objective, sampler).run)
                group.start_soon(worker.run)
    first, *_, last = versions = await published(world.bus)
    assert [version.version for version in versions] == list(range(VERSIONS + 1))
    for version in versions[1:]:
        assert all(np.isfinite(value) for value in version.metrics.values())
    begun, ended = (weights(version) for version in (first, last))
    assert any(not torch.equal(begun[key], ended[key]) for key in begun)
    trained = [item for item in items if item.targets.weights.any()]
    with engines(folder_of(last.uri), base=base, objective=objective, lora=ALL_WEIGHTS) as engine:
        now = engine.completion_logprobs([item.sample for item in trained])
    change = np.concatenate([new - item.sample.logprobs for item, new in zip(trained, now, strict=True)])
    worth = np.concatenate([item.targets.advantages * item.targets.weights for item in trained])
    assert change[worth > 0].mean() > change[worth < 0].mean(), "what was worth more has become likelier"
