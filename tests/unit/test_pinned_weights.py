"""Weights that are deleted while they are loaded, on a real disk."""

import errno
import os
import shutil
import time
from pathlib import Path
from typing import Never

import pytest

from agents.pinned_weights import pinned
from agents.weight_files import verify_folder
from schemas.errors import CheckpointCorrupt
from schemas.messages import Checkpoint
from tests.support.bus.weight_world import checkpoint_of, read, served, version_files, write

pytestmark = pytest.mark.anyio
FILES = version_files(1)


@pytest.fixture
def announced(tmp_path: Path) -> Checkpoint:
    return checkpoint_of(write(tmp_path / "v000001-abc", FILES), 1, FILES)


async def test_what_is_held_outlasts_its_folder_and_is_let_go(announced: Checkpoint, tmp_path: Path) -> None:
    async with pinned(tmp_path / "v000001-abc", announced, tmp_path / "cache") as held:
        shutil.rmtree(tmp_path / "v000001-abc")
        assert held.name == "v000001-abc"
        assert read(held) == served(FILES)
    assert list((tmp_path / "cache").iterdir()) == []


async def test_a_folder_on_another_disk_is_copied(
    announced: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(source: Path, target: Path) -> Never:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", elsewhere)
    async with pinned(tmp_path / "v000001-abc", announced, tmp_path / "cache") as held:
        shutil.rmtree(tmp_path / "v000001-abc")
        assert read(held) == served(FILES)


async def test_a_folder_of_links_is_verified_and_held_as_what_they_lead_to(announced: Checkpoint, tmp_path: Path) -> None:
    """As the hub's cache has them: relative ones, out of the folder."""
    folder, stored = tmp_path / "snapshots" / "commit", tmp_path / "blobs"
    stored.mkdir()
    for name, data in served(FILES).items():
        (stored / name).write_bytes(data)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(Path("../../blobs") / name)
    assert verify_folder(folder, announced) == folder
    async with pinned(folder, announced, tmp_path / "cache") as held:
        shutil.rmtree(stored)
        assert read(held) == served(FILES)


async def test_half_a_folder_is_refused_and_leaves_nothing(announced: Checkpoint, tmp_path: Path) -> None:
    (tmp_path / "v000001-abc" / "tokenizer.json").unlink()
    with pytest.raises(CheckpointCorrupt, match=r"tokenizer\.json was deleted before it could be loaded"):
        async with pinned(tmp_path / "v000001-abc", announced, tmp_path / "cache"):
            raise AssertionError("never held")
    assert list((tmp_path / "cache").iterdir()) == []


async def test_what_a_killed_worker_held_is_let_go_after_a_while(announced: Checkpoint, tmp_path: Path) -> None:
    left, young = tmp_path / "cache" / ".held-left", tmp_path / "cache" / ".held-young"
    for place in (left, young):
        place.mkdir(parents=True)
    os.utime(left, (0.0, time.time() - 7200.0))
    async with pinned(tmp_path / "v000001-abc", announced, tmp_path / "cache"):
        assert not left.exists()
        assert young.exists()


async def test_a_wrong_clock_lets_go_of_nothing(
    announced: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pinned(tmp_path / "v000001-abc", announced, tmp_path / "cache") as held:
        with monkeypatch.context() as jumped:
            jumped.setattr(time, "time", lambda: 2.0**33)
            async with pinned(tmp_path / "v000001-abc", announced, tmp_path / "cache"):
                assert read(held) == served(FILES)
