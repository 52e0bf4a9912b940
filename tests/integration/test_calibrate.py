"""`millrace calibrate` as people use it: a template, labels, another rubric; of a run and of its archive."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from ops import cli
from ops.run.folder import RunFolder
from tests.support.judging.judged_run import AGAIN, OLD, RELABELLED, judged_run

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Judged by two rubrics, of which the first is wrong about episode 1."""
    run, _ = anyio.run(judged_run, tmp_path_factory.mktemp("judged") / "run")
    assert cli.main(["rejudge", "--run-dir", str(run.path), RELABELLED]) == 0
    return run


def calibrate(*arguments: str | Path) -> int:
    """The exit code."""
    try:
        return cli.main(["calibrate", *map(str, arguments)])
    except SystemExit as ended:
        return int(ended.code or 0)


def figures(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_from_a_template_to_figures_of_a_run_and_of_its_archive(
    run: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = tmp_path / "labels.jsonl"
    assert calibrate(run.path, "--template", labels) == 0
    lines = [json.loads(line) for line in labels.read_text().splitlines()]
    assert [line["episode"] for line in lines] == [f"train-r0000-t{index}-m0" for index in (0, 1, 3, 4)]
    assert {line["success"] for line in lines} == {None}
    assert (lines[0]["instruction"], lines[0]["website"]) == ("click the button", "demo:click_button?seed=1")
    assert calibrate(run.path, "--template", labels) == 78
    assert "is there already" in capsys.readouterr().err

    for line, success in zip(lines, (True, False, False, None), strict=True):
        line["success"] = success
    lines.append({"episode": "elsewhere", "success": True})
    labels.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "figures" / "old.json"
    assert calibrate(run.path, "--rubric", OLD, "--labels", labels, "--json", out) == 0
    found = figures(out)
    assert found["confusion"] == {"true_positives": 1, "false_positives": 1, "false_negatives": 0, "true_negatives": 1}
    assert (found["num_compared"], found["num_unlabelled"], found["num_unjudged"], found["unknown"]) == (
        3,
        3,
        1,
        ["elsewhere"],
    )
    assert [one["episode"] for one in found["disagreements"]] == ["train-r0000-t1-m0"]
    assert "train-r0000-t1-m0: success, should be failure" in capsys.readouterr().out
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")

    assert cli.main(["archive", "--once", "--run-dir", str(run.path)]) == 0
    again = tmp_path / "figures" / "archive.json"
    assert calibrate(run.path / "archive", "--rubric", OLD, "--labels", labels, "--json", again) == 0
    assert {**figures(again), "source": ""} == {**found, "source": ""}


def test_against_another_rubric(run: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new.json"
    assert calibrate(run.path, "--rubric", OLD, "--against", AGAIN, "--json", out) == 0
    found = figures(out)
    assert found["confusion"] == {"true_positives": 2, "false_positives": 1, "false_negatives": 0, "true_negatives": 2}
    assert found["matrix"]["excluded"] == {"excluded": 1, "unjudged": 1}
    assert f"seconds of judging, {AGAIN}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("--rubric", "rubric_v9", "--against", OLD), 78, f"nothing is judged by rubric_v9 there, only by {OLD}, {AGAIN}"),
        (("--rubric", OLD, "--labels", "wrong.jsonl"), 78, "wrong.jsonl:1: Expected `bool | null`"),
        (("--rubric", OLD, "--against", OLD), 78, f"--rubric and --against are both {OLD}: name two rubrics"),
        (("--against", OLD), 2, "--rubric is missing"),
        (("--rubric", OLD), 2, "one of the arguments --labels --against --template is required"),
        (("--template", "t.jsonl", "--rubric", OLD), 2, "--template takes neither"),
    ],
)
def test_mistakes_are_told(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...], code: int, sentence: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("wrong.jsonl").write_text('{"episode": "train-r0000-t1-m0", "success": "maybe"}\n')
    assert calibrate(run.path, *arguments) == code
    assert sentence in capsys.readouterr().err
