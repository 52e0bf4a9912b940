"""Announcements with nothing behind them: the run's next version takes the place of one, and the trainer goes on."""

import random
from pathlib import Path

import pytest
from msgspec import structs

from agents.following import Following
from bus.lineage import Lineage, all_announced
from bus.memory import MemoryBus
from bus.ports import Record
from bus.presence import Status
from bus.skipping import skipped
from schemas.errors import CheckpointCorrupt
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint, Role
from schemas.objective_config import ObjectiveConfig
from tests.builders import RUBRIC, WORKER, checkpoint, judgement, task
from tests.support.training.learning_world import Recorder, play_random, train
from tests.support.training.trainer_world import SUBJECTS
from trainer.versions.announcements import Announcements
from trainer.versions.checkpoints import folder_of, why_hollow

pytestmark = pytest.mark.anyio
BATCH = 2
OBJECTIVE = ObjectiveConfig(adv_estimator="none")


async def judged_bus(num_episodes: int) -> MemoryBus:
    bus, draw = MemoryBus(SUBJECTS), random.Random(3)
    for number in range(num_episodes):
        played = await play_random(bus, task(f"t{number}"), draw)
        ruled = judgement(played)
        await bus.append(SUBJECTS.judged, SUBJECTS.judgement(ruled.split, RUBRIC, ruled.episode), ruled)
    return bus


async def forge(bus: MemoryBus, like: Checkpoint, folder: str) -> Checkpoint:
    """The next version as it could be, at a folder that nobody wrote."""
    version = PolicyVersion(like.version + 1)
    root = like.uri.rpartition("/")[0] if like.version else like.root
    forged = structs.replace(like, version=version, parent=like.version, uri=f"{root}/{folder}", root="")
    await bus.append(SUBJECTS.checkpoints, SUBJECTS.checkpoint(version), forged)
    return forged


async def test_a_trainer_goes_on_behind_a_next_version_with_nothing_behind_it(tmp_path: Path) -> None:
    bus = await judged_bus(4 * BATCH)
    status = Status(Role.TRAINER, WORKER)

    async def train_until(version: int) -> Checkpoint:
        await train(bus, tmp_path, Recorder(), OBJECTIVE, num_iterations=version, batch=BATCH, status=status)
        newest = await Announcements(bus, SUBJECTS).newest()
        assert newest is not None
        return newest

    first = await train_until(1)
    forged = await forge(bus, first, "v000002-0badf00d")
    left_out = skipped.count
    newest = await train_until(3)
    assert [each.version for each in await all_announced(bus, SUBJECTS)] == [0, 1, 2, 3]
    assert (newest.version, newest.num_trajectories) == (3, 3 * BATCH), "each judgement is consumed once"
    second = await Announcements(bus, SUBJECTS).announced(PolicyVersion(2))
    assert second.uri != forged.uri
    assert not why_hollow(second)
    assert skipped.count > left_out
    assert SUBJECTS.checkpoint(PolicyVersion(2)) in skipped.newest


async def test_what_was_written_and_is_gone_is_trained_again(tmp_path: Path) -> None:
    bus = await judged_bus(3 * BATCH)
    await train(bus, tmp_path, Recorder(), OBJECTIVE, num_iterations=2, batch=BATCH)
    before = (await all_announced(bus, SUBJECTS))[-1]
    folder_of(before.uri).rename(tmp_path / "lost")
    await train(bus, tmp_path, Recorder(), OBJECTIVE, num_iterations=2, batch=BATCH)
    again = (await all_announced(bus, SUBJECTS))[-1]
    assert (again.version, again.judged_seq) == (2, before.judged_seq)
    assert folder_of(again.uri).is_dir()


@pytest.mark.parametrize("uri", ["file:///etc", "a.b"])
async def test_a_run_begins_behind_what_was_announced_before_it(tmp_path: Path, uri: str) -> None:
    bus = await judged_bus(BATCH)
    forged = structs.replace(checkpoint(2**31 - 1), uri=uri)
    await bus.append(SUBJECTS.checkpoints, SUBJECTS.checkpoint(forged.version), forged)
    await train(bus, tmp_path, Recorder(), OBJECTIVE, num_iterations=1, batch=BATCH)
    assert [each.version for each in await all_announced(bus, SUBJECTS)] == [0, 1]
    following = Following(PolicyVersion(0))
    following.announced(1, forged, 0.0)
    following.failed(forged, CheckpointCorrupt("/etc"), 0.0, 0.0)
    following.announced(2, checkpoint(0), 1.0)
    assert not following.unable


def record(seq: int, of: Checkpoint) -> Record:
    return Record(SUBJECTS.checkpoints, SUBJECTS.checkpoint(of.version), seq, of)


async def test_only_the_newest_version_is_ever_announced_again() -> None:
    lineage = Lineage()
    first, second = checkpoint(1), checkpoint(2)
    for seq, each in enumerate((checkpoint(0), first, second), start=1):
        assert lineage.takes(record(seq, each))
    again = structs.replace(second, uri="file:///other")
    assert lineage.takes(record(4, again))
    assert lineage.newest == lineage.known[PolicyVersion(2)] == again
    assert list(lineage.replaced) == [second]
    assert not lineage.takes(record(5, structs.replace(first, uri="file:///other")))
    assert not lineage.takes(record(6, structs.replace(checkpoint(0), uri="file:///other")))
    assert lineage.known[PolicyVersion(1)] == first
    assert lineage.takes(record(7, checkpoint(3)))
    assert not lineage.replaced
