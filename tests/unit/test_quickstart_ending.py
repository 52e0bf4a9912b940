"""What a quickstart says when it has ended: words, and commands that can be copied."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from ops.quickstart.ending import farewell, result_table, said_path
from ops.quickstart.results import HeldOut, Result
from ops.run.folder import RunFolder

RESULT = Result(
    seed=0, objective="cloning", mode="async", family="click_button", observe="pixels", warm_start_success=0.25,
    final_success=0.83, num_held_out=100, setup_seconds=53.2, loop_seconds=210.4, parse_rate=0.9981, max_mismatch=0.0016,
    num_mismatch_checks=30, max_staleness=2.0, num_versions=30, num_tasks=4040, num_trajectories=4040, num_judgements=4040,
    num_duplicates=0, num_unscored=0, num_shared_pages=0, num_alike_pages=7, num_restarts=1,
    episodes_by_worker={"browser-1": 4040}, audit_holds=True, pages=(),
    held_out=(
        HeldOut(version=0, num_episodes=0, seconds=9.0, success=0.25),
        HeldOut(version=30, num_episodes=3840, seconds=209.0, success=0.83),
    ),
)  # fmt: skip


def drawn(width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    with console.capture() as capture:
        console.print(result_table(RESULT))
    return capture.get().splitlines()


@pytest.mark.parametrize("width", [80, 120, 200])
def test_figures_are_told_in_words(width: int) -> None:
    lines = drawn(width)
    text = " ".join(" ".join(lines).split())
    for expected in (
        "success on 100 held-out pages version 0 25 %, version 30 83 %",
        "53 s until learning began, 4 min of learning",
        "4,040 asked for, 4,040 played, 4,040 judged",
        "0.0016 nats at most, in 30 checks",
        "held-out pages with a known look 7 (begin like one that was trained on)",
        "promises of the streams kept",
    ):
        assert expected in text
    assert "_" not in text.replace("click_button", "")
    assert max(map(len, lines)) <= width


def test_each_command_stands_alone_on_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = farewell(RunFolder(tmp_path / "runs" / "quickstart"), RESULT).splitlines()
    commands = [line.strip().partition(" ")[2] for line in lines if line.startswith("    ")]
    assert commands == [
        "view runs/quickstart",
        "report runs/quickstart",
        "replay runs/quickstart --train",
        "monitor --run-dir runs/quickstart --once",
    ]
    assert max(len(line) for line in lines if not line.startswith("    ")) <= 80


def test_a_path_is_said_as_people_would_type_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert said_path(tmp_path / "here" / "my run") == "'my run'"
    assert said_path(tmp_path / "there") == str(tmp_path / "there")
