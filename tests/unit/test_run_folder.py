"""A run's folder: private, complete, and refused with a sentence when it cannot be had."""

from pathlib import Path

import pytest

from ops.config.loading import load_config
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
