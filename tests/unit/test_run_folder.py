"""A run's folder: private, complete, and refused with a sentence when it cannot be had."""

import errno
import fcntl
import os
import socket
from pathlib import Path

import pytest

from ops.config.loading import load_config
from ops.run.alone import alone
from ops.run.folder import RunFolder
from schemas.errors import ConfigurationError


def test_the_creators_configuration_is_what_roles_read(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "runs" / "one")
    config = load_config("update_online", ["trainer_config.seed=4"])
    folder.create(config)
    assert folder.load() == config
    assert folder.load(["trainer_config.seed=5"]).trainer_config.seed == 5
    for path in (folder.path, folder.server, folder.logs, folder.checkpoints, folder.tasks, folder.model):
        assert path.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in folder.path.iterdir() if path.is_file()] == ["config.yaml"]


def test_a_folder_without_a_run_is_answered_with_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--config"):
        RunFolder(tmp_path).load()


def test_a_full_disk_and_a_folder_that_cannot_be_are_refused(tmp_path: Path) -> None:
    config = load_config("default")
    with pytest.raises(ConfigurationError, match="MiB free"):
        RunFolder(tmp_path / "a").create(config, needed_bytes=2**60)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        RunFolder(tmp_path / "file" / "run").create(config)


def test_figures_name_what_is_in_the_folder_without_it(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    assert folder.relative(folder.checkpoints / "v000001-ab") == Path("checkpoints/v000001-ab")
    assert folder.relative(tmp_path / "base") == tmp_path / "base"


def test_one_process_at_a_time_keeps_the_roles_of_a_folder(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    mine = f"process {os.getpid()} on {socket.gethostname()}"
    with alone(folder), alone(folder, "cpu-1"), alone(folder, "gpu-1"):
        with pytest.raises(ConfigurationError, match=f"{folder.path} is in use: {mine} keeps its roles running there"):
            alone(folder).__enter__()
        with pytest.raises(ConfigurationError, match=f"{mine} keeps the roles of gpu-1 running there"):
            alone(folder, "gpu-1").__enter__()
    with alone(folder), alone(folder, "cpu-1"):
        pass


def test_on_a_disk_that_knows_no_locks_roles_run_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", cannot)
    with alone(RunFolder(tmp_path)), alone(RunFolder(tmp_path)):
        pass


def test_a_folder_that_cannot_be_is_refused_where_roles_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        alone(RunFolder(tmp_path / "file" / "run")).__enter__()
