"""`millrace calibrate` from files to files: a template is read back, and no name breaks what is shown or written."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from ops import cli
from ops.analysis.calibration.calibrating import against_labels, template
from ops.labels.label_file import LabelFile, read_labels, write_template
from schemas.errors import ConfigurationError
from schemas.ids import EpisodeId
from schemas.messages import Trajectory
from tests.builders import judgement, task, trajectory

pytestmark = pytest.mark.anyio
ODD = "first\u2028second\u2029third\x85fourth\x0cfifth\x1csixth\rseventh\nend"
PLAYED = msgspec.structs.replace(trajectory(task()), answer=ODD)


class Source:
    """Of one episode."""

    async def trajectories(self) -> AsyncIterator[Trajectory]:
        yield PLAYED

    async def judgements(self) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(rubric="rubric_v1", episode=PLAYED.episode, message=judgement(PLAYED, 1.0))

    async def rubrics(self) -> frozenset[str]:
        return frozenset({"rubric_v1"})


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def open_source(path: Path, *, name: str) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(source=Source())

    monkeypatch.setattr("ops.analysis.calibration.calibrating.open_source", open_source)


async def test_a_template_is_read_back_whatever_its_texts_hold(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    await template(tmp_path, path)
    assert [label.success for label in read_labels(path).values()] == [None]


async def test_a_sheet_is_drawn_by_chance_and_the_same_one_again(tmp_path: Path) -> None:
    names = [f"t{number}" for number in range(50)]

    async def played() -> AsyncIterator[Trajectory]:
        for name in names:
            yield trajectory(task(name))

    sheets = [tmp_path / "a", tmp_path / "b"]
    assert [await write_template(played(), sheet, 10) for sheet in sheets] == [10, 10]
    drawn = list(read_labels(sheets[0]))
    assert drawn == list(read_labels(sheets[1]))
    every = [trajectory(task(name)).episode for name in names]
    places = [every.index(episode) for episode in drawn]
    assert places == sorted(set(places))
    assert places != list(range(10))
    assert await write_template(played(), tmp_path / "c", 100) == 50


@pytest.mark.parametrize("name", ["a[/b]", "x[red]y", "[/]"])
async def test_names_of_files_are_shown_as_they_are(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / name
    labels, figures = folder / "labels.jsonl", folder / "figures.json"
    await template(tmp_path, labels)
    await against_labels(tmp_path, ["rubric_v1"], labels, None, figures)
    shown = capsys.readouterr().out
    assert f"to label in {labels}:" in shown
    assert f"written to {figures}" in shown


@pytest.mark.parametrize("name", ["figures.png", "figures.PNG"])
def test_figures_are_not_written_where_their_picture_goes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["calibrate", "runs/x", "--rubric", "r", "--against", "s", "--json", f"out/{name}"])
    assert f"--json is out/{name}, and a picture is written beside it: name a file that ends in .json" in " ".join(
        capsys.readouterr().err.split()
    )


def test_a_label_changes_its_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"success":null,"episode":"a","mine":[1, 2]}\n\n{"episode": "b",  "success": null}\n')
    file = LabelFile(path)
    file.put(EpisodeId("a"), True, "")
    assert path.read_text() == '{"success":true,"episode":"a","mine":[1,2]}\n{"episode": "b",  "success": null}\n'
    path.write_text(path.read_text() + '{"episode": "c", "success": false, "note": "by another"}\n')
    file.put(EpisodeId("b"), False, "why")
    file.put(EpisodeId("c"), None, "")
    assert [(label.episode, label.success, label.note) for label in file.labels()] == [
        ("a", True, ""),
        ("b", False, "why"),
        ("c", None, ""),
    ]
    with pytest.raises(ConfigurationError, match="has no line for the episode d"):
        file.put(EpisodeId("d"), True, "")
    path.unlink()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        file.put(EpisodeId("a"), True, "")


def test_labels_that_are_put_at_once_are_all_kept(tmp_path: Path) -> None:
    path, names = tmp_path / "labels.jsonl", [EpisodeId(f"e{number}") for number in range(40)]
    path.write_text("".join(f'{{"episode": "{name}", "success": null}}\n' for name in names))
    file = LabelFile(path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: file.put(name, True, ""), names))
    assert all(label.success for label in file.labels())
