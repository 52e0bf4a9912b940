"""`millrace calibrate` as people use it: a template, labels, another rubric; of a run and of its archive."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from ops.rejudging import command
from ops.role_process import millrace_command, millrace_environment
from ops.run_folder import RunFolder
from schemas.ids import WorkerId
from tests.judged_run import AGAIN, OLD, RELABELLED, judged_run

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


async def millrace(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, output and errors of the command as people run it."""
    argv = millrace_command([str(argument) for argument in arguments])
    with anyio.fail_after(60):
        done = await anyio.run_process(argv, env={**millrace_environment(), "COLUMNS": "160"}, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
async def run(tmp_path: Path, anyio_backend: str) -> RunFolder:
    """Judged by two rubrics, of which the first is wrong about episode 1."""
    run, _ = await judged_run(tmp_path / "run")
    assert await command.main(run.path, (RELABELLED,), WorkerId("rejudge-1")) == 0
    return run


def figures(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


async def test_from_a_template_to_figures_of_a_run_and_of_its_archive(run: RunFolder, tmp_path: Path) -> None:
    labels = tmp_path / "labels.jsonl"
    assert (await millrace("calibrate", run.path, "--template", labels))[0] == 0
    lines = [json.loads(line) for line in labels.read_text().splitlines()]
    assert [line["episode"] for line in lines] == [f"train-r0000-t{index}-m0" for index in (0, 1, 3, 4)]
    assert {line["success"] for line in lines} == {None}
    assert (lines[0]["instruction"], lines[0]["website"]) == ("click the button", "demo:click_button?seed=1")
    code, _, told = await millrace("calibrate", run.path, "--template", labels)
    assert (code, "is there already" in told) == (78, True)

    for line, success in zip(lines, (True, False, False, None), strict=True):
        line["success"] = success
    lines.append({"episode": "elsewhere", "success": True})
    labels.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "figures" / "old.json"
    code, printed, told = await millrace("calibrate", run.path, "--rubric", OLD, "--labels", labels, "--json", out)
    assert code == 0, told
    found = figures(out)
    assert found["confusion"] == {"true_positives": 1, "false_positives": 1, "false_negatives": 0, "true_negatives": 1}
    assert (found["num_compared"], found["num_unlabelled"], found["num_unjudged"], found["unknown"]) == (
        3,
        3,
        1,
        ["elsewhere"],
    )
    assert [one["episode"] for one in found["disagreements"]] == ["train-r0000-t1-m0"]
    assert "train-r0000-t1-m0: success, should be failure" in printed
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")

    assert (await millrace("archive", "--once", "--run-dir", run.path))[0] == 0
    again = tmp_path / "figures" / "archive.json"
    assert (await millrace("calibrate", run.path / "archive", "--rubric", OLD, "--labels", labels, "--json", again))[0] == 0
    assert {**figures(again), "source": ""} == {**found, "source": ""}


async def test_against_another_rubric(run: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "new.json"
    code, printed, told = await millrace("calibrate", run.path, "--rubric", OLD, "--against", AGAIN, "--json", out)
    assert code == 0, told
    found = figures(out)
    assert found["confusion"] == {"true_positives": 2, "false_positives": 1, "false_negatives": 0, "true_negatives": 2}
    assert found["matrix"]["excluded"] == {"excluded": 1, "unjudged": 1}
    assert f"seconds of judging, {AGAIN}" in printed


async def test_mistakes_are_told(run: RunFolder, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"episode": "train-r0000-t1-m0", "success": "maybe"}\n')
    for arguments, code, sentence in (
        (("--rubric", "rubric_v9", "--against", OLD), 78, f"nothing is judged by rubric_v9 there, only by {OLD}, {AGAIN}"),
        (("--rubric", OLD, "--labels", wrong), 78, f"{wrong}:1: Expected `bool | null`"),
        (("--against", OLD), 2, "--rubric is missing"),
        (("--rubric", OLD), 2, "one of the arguments --labels --against --template is required"),
    ):
        found, _, told = await millrace("calibrate", run.path, *arguments)
        assert found == code
        assert sentence in told
