"""What is kept of the versions of a long run, and what is still known of the others."""

import hashlib
from collections.abc import Sequence

import pytest
from msgspec import structs

from bus.lineage import Lineage, announced, catch_up, confirmed
from bus.memory import MemoryBus
from bus.ports import Record
from bus.weight_routes import Catalogue
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint, FileHash, WeightDifference
from tests.builders import checkpoint
from tests.support.training.trainer_world import SUBJECTS
from tests.unit.test_lost_end import lose_end
from trainer.versions.announcements import Announcements

pytestmark = pytest.mark.anyio
_WHOLE_EVERY = 20


def file(path: str, made_by: int) -> FileHash:
    return FileHash(path=path, sha256=hashlib.sha256(f"{path} {made_by}".encode()).hexdigest(), num_bytes=1)


def difference(path: str, before: int, after: int) -> WeightDifference:
    made, base = file(path, after), file(path, before)
    return WeightDifference(made.sha256, base.sha256, file(f"{path}.difference", after))


def version_of_three_files(version: int) -> Checkpoint:
    """A file that changes in every version, one that changed once, and one that never does."""
    files = (file("model", version), file("tower", min(version, 3)), file("config", 0))
    differences = [difference("model", version - 1, version)] * bool(version % _WHOLE_EVERY)
    differences += [difference("tower", 2, 3)] * (version == 3)
    return structs.replace(checkpoint(version), files=files, differences=tuple(differences))


def records(versions: Sequence[Checkpoint]) -> list[Record]:
    return [
        Record(SUBJECTS.checkpoints, SUBJECTS.checkpoint(each.version), seq, each)
        for seq, each in enumerate(versions, start=1)
    ]


def test_what_nobody_asks_for_any_more_is_let_go() -> None:
    versions, lineage = [version_of_three_files(version) for version in range(1000)], Lineage()
    for record in records(versions):
        assert lineage.takes(record)
        assert len(lineage.known) < 2 * 64 + _WHOLE_EVERY + 10
    assert list(lineage.seqs) == list(range(1000))
    newest, everything = versions[-64:], Catalogue.of(versions)
    assert [lineage.known[each.version] for each in newest] == newest
    assert Catalogue.of(lineage.known.values()).needed(newest) == everything.needed(newest), "all that these are made of"
    assert file("tower", 2).sha256 in everything.needed(newest)


def test_the_model_of_adapters_is_kept() -> None:
    lineage = Lineage(num_newest=2)
    adapters = [structs.replace(checkpoint(version), base=PolicyVersion(3)) for version in range(4, 50)]
    for record in records([*map(checkpoint, range(4)), *adapters]):
        assert lineage.takes(record)
    assert list(lineage.known) == [0, 3, 47, 48, 49]


def test_a_version_that_was_let_go_is_one_all_the_same() -> None:
    lineage = Lineage(num_newest=2)
    versions = records([checkpoint(version) for version in range(50)])
    for record in versions:
        lineage.takes(record)
    assert all(lineage.takes(record) for record in versions), "again"
    forged = structs.replace(checkpoint(7), uri="file:///other")
    assert not lineage.takes(Record(SUBJECTS.checkpoints, SUBJECTS.checkpoint(forged.version), 51, forged))
    returned = structs.replace(checkpoint(50), parent=PolicyVersion(7))
    assert lineage.takes(Record(SUBJECTS.checkpoints, SUBJECTS.checkpoint(returned.version), 52, returned))
    alone = structs.replace(checkpoint(51), parent=PolicyVersion(60))
    assert not lineage.takes(Record(SUBJECTS.checkpoints, SUBJECTS.checkpoint(alone.version), 53, alone))


async def test_a_version_that_was_let_go_is_read_where_it_stands() -> None:
    bus = MemoryBus(SUBJECTS)
    trainer = Announcements(bus, SUBJECTS)
    for version in range(10):
        await trainer.announce(checkpoint(version, loss=version))
    lineage = await catch_up(Lineage(num_newest=2), bus, SUBJECTS)
    assert 5 not in lineage.known
    assert await announced(lineage, bus, SUBJECTS, PolicyVersion(5)) == checkpoint(5, loss=5)
    assert await announced(lineage, bus, SUBJECTS, PolicyVersion(10)) is None


async def test_where_more_was_lost_than_is_kept_what_stands_is_read_anew() -> None:
    bus = MemoryBus(SUBJECTS)
    trainer = Announcements(bus, SUBJECTS)
    for version in range(10):
        await trainer.announce(checkpoint(version))
    lineage = await catch_up(Lineage(num_newest=2), bus, SUBJECTS)
    lose_end(bus, SUBJECTS.checkpoints, behind=5)
    assert (await confirmed(lineage, bus, SUBJECTS)).newest == checkpoint(4)
    assert list(lineage.seqs) == [0, 1, 2, 3, 4]


class WithoutListings(MemoryBus):
    async def subjects(self, stream: str, subject_filter: str) -> dict[str, int]:
        raise AssertionError("every subject of a long run")


async def test_a_trainer_lists_nothing_and_holds_what_it_may_have_to_announce_again() -> None:
    trainer = Announcements(WithoutListings(SUBJECTS), SUBJECTS)
    for version in range(300):
        await trainer.announce(checkpoint(version))
    assert len(trainer._own) <= 2 * 64 + 1
    assert set(range(300 - 64, 300)) <= trainer._own.keys()
