"""Weights over the bus, without one: which stretches are missing, what a full stream or disk comes to, what can be set."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from agents.partial_file import PartialFile
from agents.weight_cache import WeightCache
from bus.memory import MemoryBus
from bus.weight_chunks import CHUNK_BYTES, Stretch, chunk_bytes, missing, stretches
from schemas.bus_config import BusConfig
from schemas.errors import CheckpointCorrupt, ConfigurationError, PolicyError, TrainerError
from schemas.messages import FileHash
from tests import builders
from tests.contract.backends import SUBJECTS
from tests.support.bus.local_weights import local_weights
from tests.support.bus.weight_world import CONFIG, checkpoint_of, content, served, sha256, version_files, write
from trainer.versions.announcements import Announcements
from trainer.versions.weight_publishing import WeightPublisher

DATA = content("a file", 2500)
FILE = FileHash(path="model.safetensors", sha256=sha256(DATA), num_bytes=len(DATA))


def test_a_file_is_cut_without_a_gap() -> None:
    assert stretches(10, 4) == [(0, 4), (4, 8), (8, 10)]
    assert stretches(8, 4) == [(0, 4), (4, 8)]
    assert stretches(0, 4) == []


@pytest.mark.parametrize(
    ("held", "gaps"),
    [
        ([], [(0, 10)]),
        ([(0, 10)], []),
        ([(4, 8)], [(0, 4), (8, 10)]),
        ([(6, 10), (0, 5)], [(5, 6)]),
        ([(0, 6), (2, 4), (5, 9)], [(9, 10)]),
    ],
)
def test_what_is_missing_lies_between_what_is_held(held: list[tuple[int, int]], gaps: list[tuple[int, int]]) -> None:
    assert missing(10, [Stretch(*each) for each in held]) == gaps


def test_an_empty_file_lacks_nothing() -> None:
    assert missing(0, []) == []


def test_a_chunk_leaves_room_for_its_message() -> None:
    assert chunk_bytes(BusConfig().max_payload_bytes) == CHUNK_BYTES
    assert chunk_bytes(1_000_000) == 500_000


def test_what_cannot_work_is_refused_by_its_key() -> None:
    with pytest.raises(ConfigurationError, match=r"bus_config\.weights_kept is 1: write 2"):
        BusConfig(weights_kept=1)
    with pytest.raises(ConfigurationError, match=r"bus_config\.weights_max_gb is -1\.0: write 0"):
        BusConfig(weights_max_gb=-1.0)
    with pytest.raises(ConfigurationError, match=r"bus_config\.weights_timeout_s is 0\.0: write more than 0"):
        BusConfig(weights_timeout_s=0.0)


@pytest.mark.anyio
async def test_a_stream_without_room_stops_the_trainer_with_the_keys_name(tmp_path: Path) -> None:
    config = replace(CONFIG, weights_max_gb=4e-6)
    bus = MemoryBus(SUBJECTS, config)
    checkpoint = checkpoint_of(write(tmp_path / "1", version_files(1)), 1, version_files(1))
    announcements = Announcements(bus, SUBJECTS, WeightPublisher(bus, SUBJECTS, config))
    with pytest.raises(TrainerError, match=r"no room for version 1 .* raise bus_config\.weights_max_gb to 3 versions"):
        await announcements.announce(checkpoint)
    assert await announcements.newest() is None


@pytest.mark.anyio
async def test_room_for_one_version_more_than_are_kept_is_enough(tmp_path: Path) -> None:
    config = replace(CONFIG, weights_max_gb=1.4e-5)
    bus = MemoryBus(SUBJECTS, config)
    announcements = Announcements(bus, SUBJECTS, WeightPublisher(bus, SUBJECTS, config))
    for version in range(1, 6):
        folder = write(tmp_path / str(version), version_files(version))
        await announcements.announce(checkpoint_of(folder, version, version_files(version)))
    newest = await announcements.newest()
    assert newest is not None
    assert newest.version == 5


def test_a_full_disk_is_said_with_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arriving = PartialFile.resume(tmp_path / "file", FILE)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    arriving.write(0, DATA, FILE.sha256)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PolicyError, match=r"cannot be written to .* \(No space left on device\): free some space there"):
        arriving.finish()


def test_pieces_may_come_in_any_order_and_overlap(tmp_path: Path) -> None:
    arriving = PartialFile.resume(tmp_path / "file", FILE)
    for begin, end in ((2000, 2500), (0, 1500), (1000, 2000)):
        arriving.write(begin, DATA[begin:end], sha256(DATA[begin:end]))
    arriving.finish()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": DATA}


def test_a_hash_that_is_none_never_names_a_file(tmp_path: Path) -> None:
    checkpoint = checkpoint_of(tmp_path, 1, served(version_files(1)))
    wrong = FileHash(path="model.safetensors", sha256="../../escaped", num_bytes=1)
    with pytest.raises(CheckpointCorrupt, match="is no SHA-256"):
        WeightCache(tmp_path / "cache", 2).has(wrong)
    assert checkpoint.policy_files == checkpoint.files


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("uri", "name", "reason"),
    [
        ("file:///dev", "zero", "does not match its hash"),
        ("file:///etc", "passwd", "does not match its hash"),
        ("file:///tmp", "a\0b", "names no file"),
        ("file://[", "model.safetensors", r"is not a file:// folder"),
        ("https://example.org/x", "model.safetensors", r"is not a file:// folder"),
    ],
)
async def test_an_address_that_cannot_be_right_is_refused_by_one_error(uri: str, name: str, reason: str) -> None:
    """A device is never read: that would not end."""
    bus = MemoryBus(SUBJECTS)
    files = (FileHash(path=name, sha256="00" * 32, num_bytes=1),)
    checkpoint = msgspec.structs.replace(builders.checkpoint(1000), uri=uri, files=files)
    with pytest.raises(CheckpointCorrupt, match=reason):
        await local_weights(bus, SUBJECTS).folder(checkpoint)
