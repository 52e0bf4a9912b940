"""Checkpoint folders: whole or absent, verified, pruned."""

import errno
import os
import resource
from pathlib import Path

import msgspec
import pytest
import torch

from schemas.errors import CheckpointCorrupt, ConfigurationError, TrainerError
from tests.support.training.small_engine import SmallEngine
from tests.support.training.trainer_world import ref
from trainer.engine.held_state import open_saved
from trainer.episodes.passes import Position
from trainer.episodes.replay import ReplayEntry
from trainer.versions import checkpoints
from trainer.versions.checkpoints import (
    TrainerState,
    folder_of,
    prune,
    read_trainer_state,
    verify,
    write_checkpoint,
)
from trainer.versions.retention import Retention

STATE = TrainerState(
    version=3, position=Position(seq=41), num_trajectories=30, num_updates=9, replay=(ReplayEntry(iteration=2, step=ref(5)),)
)
ENGINE = SmallEngine(9, torch.arange(4.0))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors", "model.safetensors.index.json"):
        (folder / name).write_text(f"{{}} {name}")
    return folder


def test_what_is_written_is_read_back_and_verified(base: Path, tmp_path: Path) -> None:
    folder, files = write_checkpoint(tmp_path / "out", base=base, engine=ENGINE, state=STATE)
    assert folder.name.startswith("v000003-")
    assert [file.path for file in files] == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "trainer/optimizer-rank00000.safetensors",
        "trainer/state.msgpack",
    ]
    verify(folder, files)
    assert read_trainer_state(folder) == STATE
    with open_saved(folder / "trainer", "optimizer") as saved:
        assert saved.progress.num_updates == 9
        assert list(saved.stretches) == ["exp_avg.a.weight"]
    assert folder_of(folder.as_uri()) == folder


def test_writing_the_same_again_gives_the_same_folder(base: Path, tmp_path: Path) -> None:
    first, files = write_checkpoint(tmp_path / "out", base=base, engine=ENGINE, state=STATE)
    again, same = write_checkpoint(tmp_path / "out", base=base, engine=ENGINE, state=STATE)
    assert (first, files) == (again, same)
    assert list((tmp_path / "out").iterdir()) == [first]


def test_a_folder_that_may_be_announced_is_never_taken_away(base: Path, tmp_path: Path) -> None:
    """A policy may be loading it, and a kill in between would leave the announced version without its files."""
    folder, files = write_checkpoint(tmp_path / "out", base=base, engine=ENGINE, state=STATE)
    before = [(folder / file.path).stat().st_ino for file in files]
    again, _ = write_checkpoint(tmp_path / "out", base=base, engine=ENGINE, state=STATE)
    assert [(again / file.path).stat().st_ino for file in files] == before
    assert [path.name for path in (tmp_path / "out").iterdir()] == [folder.name]


def test_a_folder_whose_bytes_have_changed_is_written_anew(base: Path, tmp_path: Path) -> None:
    folder, files = write_checkpoint(tmp_path / "out", base=base, engine=ENGINE, state=STATE)
    (folder / "config.json").write_text("rotten")
    verify(write_checkpoint(tmp_path / "out", base=base, engine=ENGINE, state=STATE)[0], files)


def test_a_full_disk_leaves_nothing_under_the_final_name(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TrainerError, match="No space left on device"):
        write_checkpoint(tmp_path / "out", base=base, engine=ENGINE, state=STATE)
    assert not list((tmp_path / "out").glob("v*"))


def test_a_disk_without_room_for_the_weights_says_so(base: Path, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    try:
        with pytest.raises(TrainerError, match=r"cannot be written to .* \(File too large\): free some space there"):
            write_checkpoint(tmp_path / "out", base=base, engine=ENGINE, state=STATE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list((tmp_path / "out").glob("v*"))


def test_damage_is_named(base: Path, tmp_path: Path) -> None:
    folder, files = write_checkpoint(tmp_path / "out", base=base, engine=ENGINE, state=STATE)
    weights = folder / "model.safetensors"
    intact = weights.read_bytes()
    weights.write_bytes(intact[:-1] + b"\x01")
    with pytest.raises(CheckpointCorrupt, match=r"model\.safetensors is not what was written"):
        verify(folder, files)
    weights.unlink()
    with pytest.raises(CheckpointCorrupt, match=r"model\.safetensors is missing"):
        verify(folder, files)
    (folder / "trainer/state.msgpack").write_bytes(b"\xc1")
    with pytest.raises(CheckpointCorrupt, match=r"state\.msgpack cannot be read"):
        read_trainer_state(folder)
    (folder / "trainer/optimizer-rank00000.safetensors").write_bytes(b"nonsense")
    with (
        pytest.raises(CheckpointCorrupt, match=r"optimizer-rank00000\.safetensors cannot be read"),
        open_saved(folder / "trainer", "optimizer"),
    ):
        pass


def test_only_folders_can_be_continued_from() -> None:
    with pytest.raises(ConfigurationError, match="file://"):
        folder_of("https://example.org/v1")


@pytest.mark.parametrize(("keep", "left"), [(1, [4, 5]), (2, [4, 5]), (3, [3, 4, 5]), (9, [1, 2, 3, 4, 5])])
def test_pruning_keeps_the_newest_and_at_least_two(tmp_path: Path, keep: int, left: list[int]) -> None:
    for version in range(1, 6):
        (tmp_path / f"v{version:06d}-abcdef01").mkdir()
    (tmp_path / "notes").mkdir()
    prune(tmp_path, newest=5, retention=Retention(keep))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes", *(f"v{version:06d}-abcdef01" for version in left)]


@pytest.mark.parametrize(
    ("keep", "wholes", "kept", "left"),
    [
        (2, [1, 2, 2, 2, 2], (), [2, 4, 5]),
        (2, [1, 1, 1, 4, 4], (), [4, 5]),
        (2, [1, 1, 3, 3, 5], (), [3, 4, 5]),
        (2, [1, 1, 1, 1, 1], (3,), [1, 3, 4, 5]),
        (2, [0, 0, 0, 0, 0], (), [4, 5]),
        # Version 3 had one too, and training returned from it to 2, which goes on with that of 1.
        (2, [1, 1, 3, 1, 1], (), [1, 4, 5]),
    ],
)
def test_pruning_keeps_the_optimizer_that_training_would_go_on_with(
    tmp_path: Path, keep: int, wholes: list[int], kept: tuple[int, ...], left: list[int]
) -> None:
    for version, whole in enumerate(wholes, start=1):
        trainer = tmp_path / f"v{version:06d}-abcdef01" / "trainer"
        trainer.mkdir(parents=True)
        state = TrainerState(version=version, num_trajectories=0, num_updates=0, whole=whole)
        (trainer / "state.msgpack").write_bytes(msgspec.msgpack.encode(state))
        if version == whole:
            (trainer / "optimizer.safetensors").touch()
    prune(tmp_path, newest=5, retention=Retention(keep, kept=kept))
    assert sorted(int(path.name[1:7]) for path in tmp_path.iterdir()) == left


def test_a_version_whose_state_is_damaged_lets_go_of_no_optimizer(tmp_path: Path) -> None:
    for version in range(1, 6):
        trainer = tmp_path / f"v{version:06d}-abcdef01" / "trainer"
        trainer.mkdir(parents=True)
        (trainer / "state.msgpack").write_bytes(b"\xc1")
        if version < 3:
            (trainer / "optimizer.safetensors").touch()
    prune(tmp_path, newest=5, retention=Retention(2))
    assert sorted(int(path.name[1:7]) for path in tmp_path.iterdir()) == [1, 2, 4, 5]


def test_what_a_killed_trainer_had_begun_is_removed_before_anything_is_written(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "out"
    left = root / ".writing-v000002-7"
    left.mkdir(parents=True)
    (left / "model.safetensors").write_bytes(b"unfinished")

    def full(path: Path) -> None:
        assert not left.exists()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr(checkpoints, "_sync", full)
        with pytest.raises(TrainerError, match="No space left on device"):
            write_checkpoint(root, base=base, engine=ENGINE, state=STATE)
    assert not list(root.iterdir())
    written, _ = write_checkpoint(root, base=base, engine=ENGINE, state=STATE)
    assert list(root.iterdir()) == [written]


def test_some_versions_are_kept_for_good_and_some_by_name() -> None:
    retention = Retention(2, keep_every=4, kept=(5,))
    assert [version for version in range(1, 11) if not retention.lets_go(version, newest=10)] == [4, 5, 8, 9, 10]
