"""`millrace new`: what it writes, and when it writes nothing. The model is made in tests/integration/test_new_project.py."""

import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from ops import cli
from ops.config.loading import loaded
from ops.project import writing
from ops.project.writing import TEMPLATE
from schemas.errors import ConfigurationError
from trainer.feeding.task_files import read_tasks

ROOT = Path(__file__).parents[2]
FILES = sorted(str(file.relative_to(TEMPLATE)) for file in TEMPLATE.rglob("*") if file.is_file() and file.suffix != ".pyc")


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    async def make(project: Path) -> None:
        (project / "model").mkdir()

    monkeypatch.setattr(writing, "_make_model", make)


@pytest.mark.parametrize("exists", [True, False])
def test_a_new_or_empty_folder_becomes_a_project(exists: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "some" / "where"
    if exists:
        folder.mkdir(parents=True)
    assert cli.main(["new", str(folder)]) == 0
    assert f"cd {folder}" in capsys.readouterr().out
    assert sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()) == FILES
    assert (folder / "model").is_dir()
    assert list(folder.parent.iterdir()) == [folder]


@pytest.mark.parametrize("taken", ["file", "full"])
def test_what_is_there_is_left_alone(taken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").write_text("mine")
    assert cli.main(["new", str(tmp_path / taken)]) == 78
    assert "is not an empty folder: write the name of a new one" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full", "note"]


def test_a_model_that_cannot_be_made_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(project: Path) -> None:
        raise ConfigurationError("the project's model cannot be made (no torch)")

    monkeypatch.setattr(writing, "_make_model", fail)
    assert cli.main(["new", str(tmp_path / "mine")]) == 78
    assert "no torch" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_configuration_says_nothing_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TEMPLATE)
    assert loaded("config.yaml").notes == ()


def test_there_are_three_tasks_with_checks_and_every_file_is_named() -> None:
    tasks = read_tasks(TEMPLATE / "tasks.jsonl")
    assert len(tasks) == 3
    assert all(task.checks for task in tasks)
    readme = (TEMPLATE / "README.md").read_text()
    assert [file for file in FILES if file != "README.md" and f"`{file.partition('/')[0]}" not in readme] == []


@pytest.mark.parametrize("file", FILES)
def test_every_file_is_part_of_the_wheel(file: str) -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert any(fnmatch(f"template/{file}", pattern) for pattern in tool["package-data"]["ops.project"])
