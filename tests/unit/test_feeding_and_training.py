"""Feeder and trainer of one run together on the in-memory bus: neither waits for what the other will not give."""

import json
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from bus.background import background
from bus.memory import MemoryBus
from bus.settlement import settle
from bus.topology import task_queue
from schemas.algorithm_config import AlgorithmConfig
from schemas.bus_config import BusConfig
from schemas.feeder_config import FeederConfig
from schemas.messages import Checkpoint, Split, Task
from schemas.objective_config import ObjectiveConfig
from schemas.trainer_config import TrainerConfig
from tests.builders import WORKER
from tests.deadlines import HANGS_S
from tests.support.training.learning_world import ONE_EPOCH, Killed, Recorder, play_random, train
from tests.support.training.trainer_world import SUBJECTS, judge
from tests.unit.test_feeder import feeder
from trainer.estimators import num_members
from trainer.feeding import feeder as feeder_module

pytestmark = pytest.mark.anyio
BATCH = 6
NUM_ITERATIONS = 5
GRPO = ObjectiveConfig(adv_estimator="grpo", loss_type="clipped", group_size=3)
DROP = replace(GRPO, dynamic_sampling="drop")
REFILL = replace(GRPO, dynamic_sampling="refill", max_refill=2.5)
REMAX = ObjectiveConfig(adv_estimator="remax", loss_type="clipped", group_size=2)
REMAX_REFILL = replace(REMAX, dynamic_sampling="refill", max_refill=2.5)
FEEDERS = {
    "sync": FeederConfig(mode="sync", num_iterations=NUM_ITERATIONS),
    "async": FeederConfig(num_iterations=NUM_ITERATIONS, max_staleness=1, max_concurrent=8),
    "far ahead": FeederConfig(num_iterations=NUM_ITERATIONS, max_staleness=3, max_concurrent=5),
}


def named(given: object) -> str:
    return f"{given.adv_estimator}-{given.dynamic_sampling}" if isinstance(given, ObjectiveConfig) else str(given)


@pytest.fixture(autouse=True)
def quick_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeder_module, "_TICK_S", 0.02)


@dataclass
class Played:
    """Browsers, policies and judges: episodes end in a random order, and every seventh judge comes to no verdict."""

    seed: int = 0
    solved: float = 0.5
    ruined: set[int] = field(default_factory=set)
    """Versions that say nothing readable, and all that are trained from them."""
    bus: MemoryBus = field(default_factory=lambda: MemoryBus(SUBJECTS))
    version: int = 0
    num_played: int = 0

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)

    async def serve(self) -> None:
        async with self.bus.tail(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint")) as records:
            async for record in records:
                assert isinstance(record.message, Checkpoint)
                if record.message.parent in self.ruined:
                    self.ruined.add(record.message.version)
                self.version = record.message.version

    async def play(self) -> None:
        async with self.bus.work(task_queue(SUBJECTS, BusConfig(), Split.TRAIN), prefetch=0) as inbox:
            async for delivery in inbox:
                async with settle(self.bus, delivery, WORKER):
                    assert isinstance(delivery.message, Task)
                    await self.episode(delivery.message)

    async def episode(self, task: Task) -> None:
        version = self.version
        for _ in range(self.draw.randrange(20)):
            await anyio.lowlevel.checkpoint()
        parse_rate = 0.0 if version in self.ruined else 0.9
        done = await play_random(self.bus, task, self.draw, version=version, parse_rate=parse_rate)
        self.num_played += 1
        reward = None if self.draw.random() < 1 / 7 else float(self.draw.random() < self.solved)
        await judge(self.bus, done, reward)

    async def run(
        self,
        root: Path,
        objective: ObjectiveConfig,
        config: FeederConfig,
        *,
        recorder: Recorder | None = None,
        trainer: TrainerConfig | None = None,
        algorithm: AlgorithmConfig = ONE_EPOCH,
    ) -> list[dict[str, Any]]:
        """A whole run, however often the trainer dies; returns every iteration's figures."""
        recorder = recorder or Recorder()
        fed = feeder(self.bus, config, batch=BATCH, objective=objective, num_tasks=7)

        async def keep_training() -> None:
            while True:
                try:
                    return await train(
                        self.bus,
                        root,
                        recorder,
                        objective,
                        num_iterations=config.num_iterations,
                        batch=BATCH,
                        feeder=config,
                        config=trainer or TrainerConfig(),
                        algorithm=algorithm,
                    )
                except Killed:
                    continue

        with anyio.fail_after(HANGS_S):
            async with background(self.serve, *[self.play] * 4), anyio.create_task_group() as group:
                group.start_soon(fed.run)
                group.start_soon(keep_training)
        return [json.loads(line) for line in (root / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("objective", "feeding"),
    [
        (GRPO, "async"),
        (DROP, "sync"),
        (DROP, "far ahead"),
        (REFILL, "sync"),
        (REFILL, "async"),
        (REMAX, "far ahead"),
        (REMAX_REFILL, "far ahead"),
    ],
    ids=named,
)
async def test_every_run_ends(objective: ObjectiveConfig, feeding: str, tmp_path: Path) -> None:
    played = Played()
    found = await played.run(tmp_path, objective, FEEDERS[feeding])
    assert len(found) == NUM_ITERATIONS
    if objective.dynamic_sampling == "refill":
        few = BATCH / num_members(objective)
        assert all(one["groups"] - one["groups_dropped"] >= few or one["groups"] >= 2.5 * few for one in found)
    else:
        assert played.num_played == NUM_ITERATIONS * BATCH
        assert sum(one["groups"] for one in found) == played.num_played / num_members(objective), "each was taken, once"
    if feeding == "sync":
        assert all(one["groups_carried_members"] == 0 == one["members_stale"] for one in found)


@pytest.mark.parametrize(("feeding", "solved"), [("sync", 0.0), ("async", 1.0)])
async def test_a_run_without_any_variance_ends(feeding: str, solved: float, tmp_path: Path) -> None:
    found = await Played(solved=solved).run(tmp_path, REFILL, FEEDERS[feeding])
    assert [one["groups_dropped"] for one in found] == [5] * NUM_ITERATIONS, "2.5 times two groups"
    assert [one["samples"] for one in found] == [0] * NUM_ITERATIONS


@pytest.mark.parametrize(("objective", "feeding"), [(DROP, "sync"), (REFILL, "async")], ids=named)
async def test_a_run_whose_trainer_dies_ends(objective: ObjectiveConfig, feeding: str, tmp_path: Path) -> None:
    recorder = Recorder(kills={0, 1, 3, 4})
    found = await Played().run(tmp_path, objective, FEEDERS[feeding], recorder=recorder)
    assert len(found) == NUM_ITERATIONS
    assert not recorder.kills


@pytest.mark.parametrize(("objective", "feeding"), [(GRPO, "async"), (GRPO, "far ahead"), (REFILL, "far ahead")], ids=named)
async def test_a_run_that_returned_to_a_good_version_ends(objective: ObjectiveConfig, feeding: str, tmp_path: Path) -> None:
    """No group is lost by it, and nothing that the discarded versions played is learnt from.

    Episodes lag behind versions: the last version that seemed good may be a ruined one, and training returns once more, some
    times even.
    """
    config = replace(FEEDERS[feeding], num_iterations=20)
    played, recorder = Played(ruined={2}), Recorder(returns=True)
    trainer = TrainerConfig(guard_batches=2, guard_max_returns=20)
    found = await played.run(tmp_path, objective, config, recorder=recorder, trainer=trainer)
    returns = [one for one in found if "guard_returned_to" in one]
    discarded = {version for one in returns for version in range(int(one["guard_returned_to"]) + 1, one["version"])}
    assert discarded & played.ruined
    assert found[-1]["version"] == 20
    assert sum(one.get("members_collapsed", 0) for one in found) > 0, "they did play"
    assert any(one.get("samples", 0) for one in found if one["version"] > returns[0]["version"]), "it goes on"
    assert not any(version in discarded for item in recorder.items for version in item.sample.versions)
    if objective.dynamic_sampling == "off":
        assert played.num_played == 20 * BATCH
        assert found[-1]["groups_carried_members"] == 0
