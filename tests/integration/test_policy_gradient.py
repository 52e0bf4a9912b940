"""Policy gradients on real DeepSpeed and a real tiny model: what is trained on, what is learnt, what kills change."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from bus import chain
from bus.memory import MemoryBus
from schemas.messages import Observation, StepRequest
from schemas.objective_config import ObjectiveConfig
from tests.support.agents import tiny_models
from tests.support.training.dying_trainer import KilledAtEveryVersion, run_through_kills
from tests.support.training.trainer_runs import ALL_WEIGHTS, BATCH, engines, published, trainer, weights
from tests.support.training.trainer_world import SUBJECTS, PlainModel, judge, member_task, play
from trainer.engine.training_engine import TrainEngine
from trainer.episodes.sample_builder import SampleBuilder
from trainer.items import Item
from trainer.model.model_folder import suppressed_tokens
from trainer.ports import StepResult
from trainer.versions.checkpoints import folder_of, read_trainer_state

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
GRPO = ObjectiveConfig(
    adv_estimator="grpo",
    loss_type="decoupled",
    group_size=3,
    dynamic_sampling="drop",
    length_normaliser="constant",
    length_constant=1.0,
)
ORDER = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2), (3, 0), (3, 1), (3, 2))
"""Group and member of each episode. Of the first batch no group is complete; of the second, all four are."""
REWARDS = {(0, 0): 1.0, (1, 1): 1.0, (2, 2): 1.0, (0, 2): None}
"""Of those that are not 0; group 3 has nothing to compare."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build(tmp_path_factory.mktemp("model"), seed=1)


@pytest.fixture(scope="module")
def plain(base: Path) -> PlainModel:
    return PlainModel(base)


async def compared(plain: PlainModel, base: Path, bus: MemoryBus | None = None) -> MemoryBus:
    """Judged episodes of four groups, sampled by the base model; one output of each group could not be parsed."""
    bus = bus or MemoryBus(SUBJECTS)
    suppressed = suppressed_tokens(base)
    for group, member in ORDER:
        task = member_task(group, member)
        done = await play(bus, task, plain=plain, suppressed=suppressed, prompt=plain.prompt(), parsed=member != 1)
        await judge(bus, done, REWARDS.get((group, member), 0.0))
    return bus


async def test_an_iteration_of_grpo_trains_on_what_was_sampled(
    plain: PlainModel, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items: list[Item] = []
    original = TrainEngine.train

    def recorded(self: TrainEngine, given: Sequence[Item]) -> StepResult:
        items.extend(given)
        return original(self, given)

    monkeypatch.setattr(TrainEngine, "train", recorded)
    bus = await compared(plain, base)
    async with trainer(bus, base, tmp_path, num_iterations=2, objective=GRPO) as worker:
        await worker.run()
    first, second = (checkpoint.metrics for checkpoint in (await published(bus))[1:])
    assert (first["groups"], first["groups_carried_members"], first["samples"]) == (0, 6, 0)
    assert (second["groups"], second["groups_dropped"], second["groups_carried_members"]) == (4, 1, 0)
    assert second["episodes"] == 8, "one of nine has no verdict"
    assert second["samples"] == 16, "two epochs"
    assert second["ratio"] == pytest.approx(1.0, abs=0.2)
    builder = SampleBuilder(base, cutoff_len=16384)
    for item in items:
        record = await chain.read(bus, SUBJECTS, item.sample.ref)
        assert record is not None
        step = record.message
        assert isinstance(step, StepRequest)
        assert item.sample.tokens.tolist() == [*step.prompt_tokens, *step.completion_tokens]
        assert np.array_equal(item.sample.logprobs, np.array(step.logprobs, dtype=np.float32))
        assert item.targets.proximal == pytest.approx(item.sample.logprobs, abs=1e-4), "no update came between"
        screenshots = [await _screenshot(bus, step, index) for index in range(len(step.screenshots))]
        for trained, seen in zip(item.sample.screenshots, builder.patches(screenshots), strict=True):
            assert np.array_equal(trained.raw, seen.raw)
    with engines_on(folder_of((await published(bus))[-1].uri)) as engine:
        moved = [
            (float((logprobs - item.targets.proximal).sum()), float(item.targets.advantages[0]))
            for item, logprobs in zip(items, engine.completion_logprobs([item.sample for item in items]), strict=True)
        ]
    better = [change for change, advantage in moved if advantage > 0]
    worse = [change for change, advantage in moved if advantage < 0]
    assert np.mean(better) > 0 > np.mean(worse), "what was worth more has become likelier"


@contextmanager
def engines_on(folder: Path) -> Iterator[TrainEngine]:
    with engines(folder, base=folder, objective=GRPO, lora=ALL_WEIGHTS) as engine:
        yield engine


async def _screenshot(bus: MemoryBus, step: StepRequest, index: int) -> bytes:
    record = await chain.read(bus, SUBJECTS, step.screenshot_refs[index])
    assert record is not None
    assert isinstance(record.message, Observation)
    return record.message.screenshot.data


async def test_kills_with_groups_carried_over_change_no_byte(plain: PlainModel, base: Path, tmp_path: Path) -> None:
    whole, killed = await compared(plain, base), await compared(plain, base, KilledAtEveryVersion())
    async with trainer(whole, base, tmp_path / "whole", num_iterations=2, objective=GRPO) as worker:
        await worker.run()
    again_and_again = partial(trainer, killed, base, tmp_path / "killed", num_iterations=2, objective=GRPO)
    assert await run_through_kills(again_and_again) == 2
    _, middle, last = await published(killed)
    assert len(read_trainer_state(folder_of(middle.uri)).carried) == BATCH
    once = (await published(whole))[-1]
    assert last.trainer_step == once.trainer_step > 0
    same, other = weights(once), weights(last)
    assert all(torch.equal(same[name], other[name]) for name in same)
    begun = weights((await published(whole))[1])
    assert any(not torch.equal(begun[name], same[name]) for name in same), "something was learnt"
