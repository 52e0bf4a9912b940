"""Policy gradients over random episodes: trained tokens are the sampled tokens, wherever the trainer was killed."""

import random
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import anyio
import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bus import chain
from bus.memory import MemoryBus
from schemas.algorithm_config import AlgorithmConfig
from schemas.messages import Observation, RecordRef, StepRequest
from schemas.objective_config import Aggregation, ObjectiveConfig
from schemas.trainer_config import TrainerConfig
from tests.support.training import ragged
from tests.support.training.learning_world import Killed, Recorder, described, play_random, train
from tests.support.training.trainer_world import SUBJECTS, judge, member_task
from trainer.items import Item
from trainer.objective.policy_objective import PolicyObjective
from trainer.token_losses import Outputs

BATCH = 4
NUM_ITERATIONS = 3


@dataclass(frozen=True)
class Case:
    seed: int
    group_size: int
    sampling: Literal["off", "drop", "refill"]
    num_stored: int
    """0: online."""

    kl_loss_coef: float = 0.0
    loss_agg_mode: Aggregation = "token-mean"
    save_every: int = 1

    @property
    def objective(self) -> ObjectiveConfig:
        return ObjectiveConfig(
            adv_estimator="grpo",
            loss_type="decoupled",
            group_size=self.group_size,
            dynamic_sampling=self.sampling,
            max_refill=2.0,
            kl_loss_coef=self.kl_loss_coef,
            loss_agg_mode=self.loss_agg_mode,
        )

    async def episodes(self) -> MemoryBus:
        """Members of all groups judged in a random order; enough of them for every iteration."""
        bus, draw = MemoryBus(SUBJECTS), random.Random(self.seed)
        count = self.num_stored or 14 * self.group_size
        order = [divmod(index, self.group_size) for index in range(count)]
        draw.shuffle(order)
        for group, member in order:
            played = await play_random(bus, member_task(group, member), draw)
            await judge(bus, played, draw.choice([1.0, 0.0, 0.0, None]))
        return bus

    async def train(self, bus: MemoryBus, root: Path, recorder: Recorder, num_iterations: int) -> None:
        await train(
            bus,
            root,
            recorder,
            self.objective,
            num_iterations=num_iterations,
            batch=BATCH,
            algorithm=AlgorithmConfig(num_train_epochs=1, filter_same_screenshot=False),
            num_stored=self.num_stored,
            config=TrainerConfig(save_every=self.save_every),
        )


cases = st.builds(
    Case,
    seed=st.integers(0, 10_000),
    group_size=st.integers(2, 4),
    sampling=st.sampled_from(["off", "drop", "refill"]),
    num_stored=st.sampled_from([0, 7]),
    save_every=st.integers(1, 3),
)


@settings(max_examples=12)
@given(case=cases, stops=st.sets(st.integers(1, NUM_ITERATIONS)), kills=st.sets(st.integers(0, 8), max_size=4))
def test_kills_and_restarts_change_nothing_that_is_trained_on(case: Case, stops: set[int], kills: set[int]) -> None:
    async def run(root: Path) -> None:
        whole, parted = Recorder(), Recorder(kills=set(kills))
        await case.train(await case.episodes(), root / "whole", whole, NUM_ITERATIONS)
        bus = await case.episodes()
        for until in sorted(stops | {NUM_ITERATIONS}):
            done = False
            while not done:
                try:
                    await case.train(bus, root / "parted", parted, until)
                    done = True
                except Killed:
                    continue
        assert {number: [described(item) for item in items] for number, items in parted.steps.items()} == {
            number: [described(item) for item in items] for number, items in whole.steps.items()
        }

    _run(run)


@settings(max_examples=12)
@given(case=cases)
def test_train_tokens_are_the_sampled_tokens(case: Case) -> None:
    async def run(root: Path) -> None:
        bus, recorder = await case.episodes(), Recorder()
        await case.train(bus, root, recorder, NUM_ITERATIONS)
        for item in recorder.items:
            sample = item.sample
            record = await chain.read(bus, SUBJECTS, sample.ref)
            assert record is not None
            step = record.message
            assert isinstance(step, StepRequest)
            assert tuple(sample.tokens[: sample.num_prompt]) == step.prompt_tokens
            assert tuple(sample.tokens[sample.num_prompt :]) == step.completion_tokens
            assert np.array_equal(sample.logprobs, np.array(step.logprobs, dtype=np.float32))
            assert np.array_equal(item.targets.behaviour, sample.logprobs)
            assert set(sample.versions.tolist()) == {span.version for span in step.versions}
            seen = [await _screenshot(bus, ref) for ref in step.screenshot_refs]
            assert [screenshot.raw.tobytes() for screenshot in sample.screenshots] == seen
            assert np.abs(item.targets.advantages).min() > 0, "all tokens of a step have the episode's"
            assert (item.targets.weights > 0).all()

    _run(run)


@settings(max_examples=12)
@given(case=cases, mode=st.sampled_from(get_args(Aggregation)))
def test_what_is_not_computed_changes_no_number(case: Case, mode: Aggregation) -> None:
    """With a divergence that is too small to matter every step has to be computed; without it those with an advantage."""

    async def run(root: Path) -> None:
        found = []
        for number, coef in enumerate((0.0, 1e-12)):
            recorder, chosen = Recorder(), replace(case, kl_loss_coef=coef, loss_agg_mode=mode)
            await chosen.train(await chosen.episodes(), root / str(number), recorder, NUM_ITERATIONS)
            steps = [_gradient(items, chosen.objective) for _, items in sorted(recorder.steps.items())]
            found.append((steps, len([item for items in recorder.steps.values() for item in items])))
        (skipping, num_computed), (computing, num_all) = found
        assert num_computed <= num_all
        assert len(skipping) == len(computing)
        for ours, whole in zip(skipping, computing, strict=True):
            for ref, gradient in whole.items():
                np.testing.assert_allclose(ours.get(ref, np.zeros(len(gradient))), gradient, rtol=1e-6, atol=1e-10)

    _run(run)


def _gradient(items: list[Item], objective: ObjectiveConfig) -> dict[RecordRef, np.ndarray]:
    """Of one optimizer step by every completion token's log-probability, for a policy that has moved somewhere."""
    sampled = np.concatenate([item.sample.logprobs for item in items]).astype(np.float64)
    moved = torch.from_numpy(sampled * 1.1 - 0.05).requires_grad_()
    targets = ragged.targets(items)
    token = PolicyObjective(objective)(Outputs(moved), targets)
    (token.losses * targets.weights).sum().backward()  # type: ignore[no-untyped-call]
    assert moved.grad is not None
    ends = np.cumsum([item.sample.num_completion for item in items])[:-1]
    return {item.sample.ref: part for item, part in zip(items, np.split(moved.grad.numpy(), ends), strict=True)}


async def _screenshot(bus: MemoryBus, ref: RecordRef) -> bytes:
    record = await chain.read(bus, SUBJECTS, ref)
    assert record is not None
    assert isinstance(record.message, Observation)
    return record.message.screenshot.data


def _run(work: Callable[[Path], Awaitable[None]]) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            await work(Path(folder))

    anyio.run(main)
