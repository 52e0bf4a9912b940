"""The guard on real DeepSpeed and a real tiny model: a learning rate that ruins it, and the way back."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import numpy as np
import pytest
import safetensors.torch
import torch
from transformers import AutoConfig

from bus.background import background
from bus.memory import MemoryBus
from schemas.errors import TrainingCollapsed
from schemas.messages import Checkpoint
from schemas.trainer_config import TrainerConfig
from tests.deadlines import HANGS_S
from tests.support.agents import tiny_models
from tests.support.training.dying_trainer import KilledAtEveryVersion, run_through_kills
from tests.support.training.earlier_engines import watch_earlier_engines
from tests.support.training.trainer_runs import BATCH, published, trainer, weights
from tests.support.training.trainer_world import SUBJECTS, PlainModel, judge, play, settings, small, train_task
from trainer.engine.training_engine import TrainEngine, open_engine
from trainer.versions.checkpoints import folder_of, read_trainer_state

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

_RUINED = 0.02
"""A weight that has moved so far makes the scripted policy babble."""
_FATAL = small(learning_rate=0.5, warmup_steps=1000)
_GUARD = TrainerConfig(torch_threads=1, keep_checkpoints=2, mismatch_samples=0, guard_batches=2, guard_lr_factor=1e-4)


def engines(folder: Path, resume: Path | None, num_updates: int) -> AbstractContextManager[TrainEngine]:
    return open_engine(folder, settings=settings(algorithm=_FATAL), resume=resume, num_updates=num_updates)


class Scripted(PlainModel):
    """A policy whose tokens are made up: nothing here looks at them."""

    def __init__(self, base: Path) -> None:
        self.config = AutoConfig.from_pretrained(base)

    def logprobs(
        self, prompt: Sequence[int], completion: Sequence[int], screenshots: Sequence[bytes], suppressed: Sequence[int]
    ) -> np.ndarray:
        return np.zeros(len(completion), dtype=np.float32)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build(tmp_path_factory.mktemp("model"), seed=1)


async def policy(bus: MemoryBus, plain: PlainModel, base: Path) -> None:
    """Plays one batch with every version; parses and succeeds as long as its weights are near the base's."""
    start = safetensors.torch.load_file(base / "model.safetensors")
    async with bus.tail(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint")) as records:
        async for record in records:
            checkpoint = record.message
            assert isinstance(checkpoint, Checkpoint)
            now = weights(checkpoint)
            moved = max(float((now[name] - start[name]).abs().max()) for name in start)
            sane = moved < _RUINED
            for index in range(checkpoint.version * BATCH, (checkpoint.version + 1) * BATCH):
                task = train_task(index)
                done = await play(bus, task, plain=plain, prompt=plain.prompt(), version=checkpoint.version, parsed=sane)
                await judge(bus, done, 1.0)


async def run(bus: MemoryBus, plain: PlainModel, base: Path, root: Path, *, num_iterations: int, config: TrainerConfig) -> int:
    """Until the run is over, however often the trainer dies; returns how often."""
    opened = partial(trainer, bus, base, root, num_iterations=num_iterations, config=config, open_engine=engines)
    async with background(partial(policy, bus, plain, base)):
        with anyio.fail_after(HANGS_S):
            return await run_through_kills(opened)


async def test_training_returns_to_the_last_good_version_and_goes_on(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Scripted(base)
    whole = MemoryBus(SUBJECTS)
    with monkeypatch.context() as patched:
        left = watch_earlier_engines(patched)
        assert await run(whole, plain, base, tmp_path / "whole", num_iterations=6, config=_GUARD) == 0
    assert left == [0, 0], "parameters of an engine when the next one is opened"
    versions = await published(whole)
    returned = [checkpoint for checkpoint in versions if "guard_returned_to" in checkpoint.metrics]
    assert len(returned) == 1
    (back,) = returned
    good = versions[int(back.metrics["guard_returned_to"])]
    assert 0 < good.version < back.version - 1
    assert back.parent == good.version
    assert back.metrics["parse_rate"] == 0.0
    assert back.trainer_step == good.trainer_step
    learnt = [file for file in back.files if file.path != "trainer/state.msgpack"]
    assert learnt == [file for file in good.files if file.path != "trainer/state.msgpack"], (
        "weights and optimizer, bit for bit"
    )
    state = read_trainer_state(folder_of(versions[-1].uri))
    assert state.guard.num_returns == 1
    assert max(entry.iteration for entry in state.replay) >= back.version
    assert not {entry.iteration for entry in state.replay} & set(range(good.version, back.version)), "dropped"
    last = versions[-1]
    assert last.version == 6
    assert last.trainer_step > back.trainer_step, "it goes on"
    assert last.metrics["parse_rate"] == 1.0
    assert last.metrics["learning_rate"] < 1e-5
    lines = (tmp_path / "whole/metrics.jsonl").read_text().splitlines()
    assert len(lines) == 6
    assert sum("guard_returned_to" in line for line in lines) == 1

    killed = KilledAtEveryVersion()
    assert await run(killed, plain, base, tmp_path / "killed", num_iterations=6, config=_GUARD) == 6
    again = await published(killed)
    assert [checkpoint.files for checkpoint in again[1:]] == [checkpoint.files for checkpoint in versions[1:]]
    assert all(torch.equal(tensor, weights(last)[name]) for name, tensor in weights(again[-1]).items())
    assert len((tmp_path / "killed/metrics.jsonl").read_text().splitlines()) == 6


async def test_it_returns_and_is_killed_where_few_versions_have_the_optimizer(base: Path, tmp_path: Path) -> None:
    bus = KilledAtEveryVersion()
    config = replace(_GUARD, save_every=4)
    assert await run(bus, Scripted(base), base, tmp_path, num_iterations=6, config=config) == 6
    versions = await published(bus)
    assert [checkpoint.version for checkpoint in versions] == list(range(7))
    assert sum("guard_returned_to" in checkpoint.metrics for checkpoint in versions) == 1
    with_optimizer = {
        checkpoint.version
        for checkpoint in versions
        if any(file.path == "trainer/optimizer-rank00000.safetensors" for file in checkpoint.files)
    }
    assert with_optimizer < set(range(1, 7))
    assert 6 in with_optimizer, "the last one"
    for checkpoint in versions[-2:]:
        state = read_trainer_state(folder_of(checkpoint.uri))
        assert state.whole == max((version for version in with_optimizer if version <= checkpoint.version), default=0)
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 6


async def test_one_collapse_too_many_ends_the_run(base: Path, tmp_path: Path) -> None:
    none_left = TrainerConfig(torch_threads=1, mismatch_samples=0, guard_batches=1, guard_max_returns=0)
    bus = MemoryBus(SUBJECTS)
    with pytest.raises(TrainingCollapsed, match="collapsed again"):
        await run(bus, Scripted(base), base, tmp_path, num_iterations=6, config=none_left)
    assert 0 < (await published(bus))[-1].version < 6
