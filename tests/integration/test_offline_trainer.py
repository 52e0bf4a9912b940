"""The trainer offline: passes over stored episodes, what is consumed, what a kill changes (nothing)."""

from functools import partial
from pathlib import Path

import pytest
import torch

from schemas.errors import MismatchExceeded
from tests.support.agents import tiny_models
from tests.support.training.dying_trainer import KilledAtEveryVersion, run_through_kills
from tests.support.training.trainer_runs import BATCH, played, published, trainer, weights
from tests.support.training.trainer_world import PlainModel
from trainer.episodes.passes import Position
from trainer.versions.checkpoints import folder_of, read_trainer_state

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
NUM_STORED = 2 * BATCH + 2
"""A pass is three iterations, the last of two episodes."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build(tmp_path_factory.mktemp("model"), seed=1)


@pytest.fixture(scope="module")
def plain(base: Path) -> PlainModel:
    return PlainModel(base)


async def test_trains_in_passes_over_what_is_stored(plain: PlainModel, base: Path, tmp_path: Path) -> None:
    bus = await played(plain, base, NUM_STORED, version=7)
    async with trainer(bus, base, tmp_path, num_iterations=5, num_stored=NUM_STORED, version=7) as worker:
        await worker.run()
    versions = await published(bus)
    assert [checkpoint.num_trajectories for checkpoint in versions] == [0, 6, 12, 14, 20, 26]
    assert [checkpoint.judged_seq for checkpoint in versions] == [0, 6, 12, 14, 6, 12]
    assert read_trainer_state(folder_of(versions[-1].uri)).position == Position(seq=12, num_passes=1, num_in_pass=12)
    first, second, last = (versions[number].metrics for number in (1, 2, 5))
    assert first["mismatch"] < 1e-4, "version 7 of the other run is this run's base model"
    assert "mismatch" not in second, "nothing was sampled by weights that were trained here"
    assert first["discarded_stale"] == 0, "no age is too old"
    assert last["samples"] == 2 * 10, "two epochs over every successful step, each in the buffer once"
    assert last["loss"] < second["loss"] < first["loss"]


async def test_kills_change_no_byte_in_whichever_pass(plain: PlainModel, base: Path, tmp_path: Path) -> None:
    whole, killed = await played(plain, base, NUM_STORED), await played(plain, base, NUM_STORED, KilledAtEveryVersion())
    async with trainer(whole, base, tmp_path / "whole", num_iterations=5, num_stored=NUM_STORED) as worker:
        await worker.run()
    again_and_again = partial(trainer, killed, base, tmp_path / "killed", num_iterations=5, num_stored=NUM_STORED)
    assert await run_through_kills(again_and_again) == 5
    once, again = (await published(whole))[-1], (await published(killed))[-1]
    assert (again.judged_seq, again.num_trajectories, again.trainer_step) == (12, 26, once.trainer_step)
    same, other = weights(once), weights(again)
    assert all(torch.equal(same[name], other[name]) for name in same)


async def test_samples_of_an_unknown_version_are_not_compared(plain: PlainModel, base: Path, tmp_path: Path) -> None:
    other = PlainModel(tiny_models.build(tmp_path / "other", seed=2))
    bus = await played(other, base, BATCH)
    async with trainer(bus, base, tmp_path / "unknown", num_iterations=1, num_stored=BATCH) as worker:
        await worker.run()
    assert "mismatch" not in (await published(bus))[-1].metrics
    wrong = await played(other, base, BATCH)
    async with trainer(wrong, base, tmp_path / "wrong", num_iterations=1, num_stored=BATCH, version=0) as worker:
        with pytest.raises(MismatchExceeded):
            await worker.run()
