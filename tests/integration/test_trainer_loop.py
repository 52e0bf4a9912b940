"""The trainer on real DeepSpeed and a real tiny model, over the in-memory bus: what is consumed, published and resumed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

import anyio
import msgspec
import pytest
import torch
from anyio import to_thread

from bus.background import background
from bus.memory import MemoryBus
from bus.ports import Expect
from ops.simulation.training import Counters
from schemas.errors import CheckpointCorrupt, MismatchExceeded, TrainerError
from schemas.ids import PolicyVersion
from schemas.messages import AnyMessage, Checkpoint
from tests.deadlines import HANGS_S
from tests.support.agents import tiny_models
from tests.support.training.trainer_runs import BATCH, played, published, trainer, weights
from tests.support.training.trainer_world import ALGORITHM, SUBJECTS, PlainModel, judge, play, train_task
from trainer.engine.training_engine import TrainEngine
from trainer.items import Item
from trainer.ports import StepResult
from trainer.versions.checkpoints import TrainerState, folder_of, read_trainer_state, write_checkpoint

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build(tmp_path_factory.mktemp("model"), seed=1)


@pytest.fixture(scope="module")
def plain(base: Path) -> PlainModel:
    return PlainModel(base)


async def test_trains_publishes_and_ends(plain: PlainModel, base: Path, tmp_path: Path) -> None:
    bus = await played(plain, base, 3 * BATCH)
    async with trainer(bus, base, tmp_path, num_iterations=3) as worker:
        with anyio.fail_after(HANGS_S):
            await worker.run()
    versions = await published(bus)
    assert [checkpoint.version for checkpoint in versions] == [0, 1, 2, 3]
    assert [checkpoint.num_trajectories for checkpoint in versions] == [0, 6, 12, 18]
    assert [checkpoint.judged_seq for checkpoint in versions] == [0, 6, 12, 18]
    first, last = versions[1].metrics, versions[3].metrics
    assert first["mismatch"] < 1e-4, "the sampler's log-probabilities are those of the same weights"
    assert first["success"] == pytest.approx(0.8)
    assert first["unscored"] == 1
    assert first["staleness_max"] == 0
    assert last["staleness_max"] == 2
    assert "mismatch" not in last, "nothing was sampled by version 2"
    assert last["samples"] == 2 * 12, "two epochs over all that is in the replay buffer"
    assert last["loss"] < first["loss"]
    kept = sorted(path.name[:7] for path in (tmp_path / "checkpoints").iterdir())
    assert kept == ["v000001", "v000002", "v000003"], "nothing that version 1 played has been seen: it may yet prove good"
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 3


async def test_a_restart_gives_the_same_weights_and_consumes_nothing_twice(
    plain: PlainModel, base: Path, tmp_path: Path
) -> None:
    whole, halved = await played(plain, base, 3 * BATCH), await played(plain, base, 3 * BATCH)
    async with trainer(whole, base, tmp_path / "whole", num_iterations=3) as worker:
        await worker.run()
    for until in (1, 2, 3):
        async with trainer(halved, base, tmp_path / "halved", num_iterations=until) as worker:
            await worker.run()
    once, again = (await published(whole))[-1], (await published(halved))[-1]
    assert again.judged_seq == once.judged_seq
    assert again.trainer_step == once.trainer_step
    same, other = weights(once), weights(again)
    assert all(torch.equal(same[name], other[name]) for name in same)
    replay = read_trainer_state(folder_of(again.uri)).replay
    assert len({entry.step for entry in replay}) == len(replay) == 12


class Killed(BaseException):
    """Stands for kill -9 at one moment: nothing of the trainer's own runs after it."""


class KilledBeforeAnnouncing(MemoryBus):
    """Dies once, when a version has been written but not announced."""

    def __init__(self, version: int) -> None:
        super().__init__(SUBJECTS)
        self._subject = SUBJECTS.checkpoint(PolicyVersion(version))

    async def append(self, stream: str, subject: str, message: AnyMessage, *, expect: Expect | None = None) -> int:
        if subject == self._subject:
            self._subject = ""
            raise Killed
        return await super().append(stream, subject, message, expect=expect)


async def test_a_kill_between_writing_and_announcing_changes_nothing(plain: PlainModel, base: Path, tmp_path: Path) -> None:
    whole = await played(plain, base, 2 * BATCH)
    async with trainer(whole, base, tmp_path / "whole", num_iterations=2) as worker:
        await worker.run()
    killed = await played(plain, base, 2 * BATCH, KilledBeforeAnnouncing(2))
    async with trainer(killed, base, tmp_path / "killed", num_iterations=2) as worker:
        with pytest.raises(Killed):
            await worker.run()
    assert [checkpoint.version for checkpoint in await published(killed)] == [0, 1]
    async with trainer(killed, base, tmp_path / "killed", num_iterations=2) as worker:
        await worker.run()
    once, again = (await published(whole))[-1], (await published(killed))[-1]
    assert (again.judged_seq, again.trainer_step, again.num_trajectories) == (12, once.trainer_step, 12)
    assert again.files == once.files, "byte for byte what an uninterrupted trainer writes"
    assert len(list((tmp_path / "killed/checkpoints").iterdir())) == 2


async def test_cancelling_waits_for_no_iteration_and_loses_nothing(
    plain: PlainModel, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = await played(plain, base, 2 * BATCH)
    begun, train = Event(), TrainEngine.train

    def training(engine: TrainEngine, items: Sequence[Item]) -> StepResult:
        begun.set()
        return train(engine, items)

    monkeypatch.setattr(TrainEngine, "train", training)
    endless = replace(ALGORITHM, num_train_epochs=1_000_000)
    with anyio.fail_after(HANGS_S):
        async with trainer(bus, base, tmp_path, num_iterations=2, algorithm=endless) as worker, background(worker.run):
            await to_thread.run_sync(begun.wait, abandon_on_cancel=True)
    async with trainer(bus, base, tmp_path, num_iterations=2) as worker:
        await worker.run()
    assert [checkpoint.judged_seq for checkpoint in await published(bus)] == [0, 6, 12]


async def test_what_is_too_old_is_discarded_and_counted(plain: PlainModel, base: Path, tmp_path: Path) -> None:
    bus = await played(plain, base, 3 * BATCH)
    async with trainer(bus, base, tmp_path, num_iterations=3, max_staleness=1) as worker:
        await worker.run()
    last = (await published(bus))[-1].metrics
    assert last["discarded_stale"] == 5
    assert last["fresh_samples"] == 0
    assert last["staleness_max"] <= 1


async def test_demonstrations_are_not_trained_on(plain: PlainModel, base: Path, tmp_path: Path) -> None:
    bus = MemoryBus(SUBJECTS)
    await judge(bus, await play(bus, train_task(99, demonstrate=True), plain=plain, prompt=plain.prompt()))
    await played(plain, base, 1 * BATCH, bus)
    async with trainer(bus, base, tmp_path, num_iterations=1) as worker:
        await worker.run()
    last = (await published(bus))[-1]
    assert last.judged_seq == 1 + BATCH, "the demonstration's judgement does not count"
    assert last.num_trajectories == BATCH


async def test_weights_that_the_sampler_did_not_have_stop_the_run(plain: PlainModel, base: Path, tmp_path: Path) -> None:
    other = PlainModel(tiny_models.build(tmp_path / "other", seed=2))
    bus = await played(other, base, 1 * BATCH)
    async with trainer(bus, base, tmp_path / "run", num_iterations=1) as worker:
        with pytest.raises(MismatchExceeded, match="did not load the announced weights"):
            await worker.run()
    assert [checkpoint.version for checkpoint in await published(bus)] == [0]


async def test_a_second_trainer_is_refused(plain: PlainModel, base: Path, tmp_path: Path) -> None:
    bus = await played(plain, base, 1 * BATCH)

    async def rival() -> None:
        async with bus.tail(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint")) as records:
            first = (await anext(records)).message
        assert isinstance(first, Checkpoint)
        version = PolicyVersion(1)
        state = TrainerState(version=1, num_trajectories=BATCH, num_updates=1)
        folder, files = write_checkpoint(folder_of(first.root), base=base, engine=Counters(), state=state)
        other = msgspec.structs.replace(first, version=version, parent=first.version, uri=folder.as_uri(), files=files)
        await bus.append(SUBJECTS.checkpoints, SUBJECTS.checkpoint(version), other)

    async with trainer(bus, base, tmp_path, num_iterations=2) as worker, background(rival):
        with pytest.raises(TrainerError, match="another trainer"):
            await worker.run()


async def test_a_damaged_checkpoint_is_refused(plain: PlainModel, base: Path, tmp_path: Path) -> None:
    bus = await played(plain, base, 2 * BATCH)
    async with trainer(bus, base, tmp_path, num_iterations=1) as worker:
        await worker.run()
    damaged = folder_of((await published(bus))[-1].uri) / "trainer/optimizer-rank00000.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\xff")
    async with trainer(bus, base, tmp_path, num_iterations=2) as worker:
        with pytest.raises(CheckpointCorrupt, match=r"optimizer-rank00000\.safetensors"):
            await worker.run()
