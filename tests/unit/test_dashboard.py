"""The terminal display: fits every size, shows every figure, and degrades to lines."""

import io
from dataclasses import replace

import pytest
from rich.text import Text

from ops.console.terminal import Console
from ops.monitor.curve import draw_curve
from ops.monitor.dashboard import dashboard, render, summary_line
from ops.monitor.view import Curve, CurvePoint, Metrics, Progress, RoleRow, VersionMark, View

_VIEW = View(
    title="Millrace quickstart",
    phases=("set-up", "warm start", "learning", "evaluation"),
    phase=2,
    remark="The policy was warm-started on 12,000 demonstrations.",
    elapsed_s=221.0,
    roles=(
        RoleRow(worker="browser-1", state="working", note="12 of 16 slots busy, " * 12),
        RoleRow(worker="policy-1", state="loading", num_restarts=2),
        RoleRow(worker="trainer", state="training"),
    ),
    progress=(Progress(label="iteration 9", done=48, total=112, note="loss 0.123"), Progress(label="warming", done=3)),
    curve=Curve(
        train=tuple(CurvePoint(num_episodes=64 * i, success=min(1.0, 0.35 + i / 60)) for i in range(1, 40)),
        held_out=(CurvePoint(num_episodes=0, success=0.39),),
        versions=tuple(VersionMark(num_episodes=256 * i, version=i) for i in range(1, 10)),
        bar=0.8,
        num_expected=3072,
    ),
    metrics=Metrics(
        num_episodes=2496, success=0.84, success_window=256, version=8, staleness=0.42, max_staleness=1,
        parse_rate=0.998, mismatch=0.0016, queue_depth=3, episodes_per_s=14.2,
    ),
)  # fmt: skip
_SHOWN = ("2,496", "84 %", "0.42", "99.8 %", "0.0016", "14.2", "browser-1", "trainer", "3:41", "learning", "43 %")


def _drawn(view: View, width: int, height: int) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(render(view, width, height))
    return capture.get().splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (119, 40), (120, 30), (160, 50), (60, 16), (250, 80)])
def test_every_size_shows_every_figure(width: int, height: int) -> None:
    lines = _drawn(_VIEW, width, height)
    text = "\n".join(lines)
    for shown in _SHOWN:
        assert shown in text
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize(("width", "height"), [(80, 24), (119, 30), (120, 30), (200, 60)])
def test_a_pause_says_what_to_do_at_every_size(width: int, height: int) -> None:
    note = "2,000 calls were made: raise judge_config.max_calls (2,000) and start the judges again; nothing is lost"
    view = replace(_VIEW, roles=(*_VIEW.roles, RoleRow(worker="judge-1", state="paused", note=note)))
    lines = _drawn(view, width, height)
    assert any("judge-1" in line and "paused" in line and "raise judge_config.max_calls" in line for line in lines)
    assert len(lines) <= height
    assert summary_line(view).endswith(f"judge-1 paused: {note}")


@pytest.mark.parametrize("size", [(20, 5), (1, 1), (80, 24), (200, 60)])
def test_an_empty_view_and_a_tiny_terminal_are_drawn(size: tuple[int, int]) -> None:
    assert _drawn(View(title="t"), *size)
    assert _drawn(_VIEW, *size)


def test_the_curve_stands_where_its_values_are() -> None:
    points = tuple(CurvePoint(num_episodes=n, success=n / 100) for n in range(0, 101, 10))
    lines = draw_curve(Curve(train=points, bar=0.8), 56, 13).plain.split("\n")
    assert len(lines) == 13
    braille = [[column for column, glyph in enumerate(line) if "⠀" < glyph <= "⣿"] for line in lines[:11]]
    assert braille[0][-1] == 55
    assert braille[10][0] == 6
    first = [row[0] for row in braille]
    assert first == sorted(first, reverse=True)
    assert lines[0].startswith("100 %┤")
    assert lines[2].startswith(" 80 %┤┄")
    assert lines[12].endswith("100 episodes")


@pytest.mark.parametrize("successes", [(0.8, 0.8), (0.75, 0.85, 0.75, 0.85), (0.75, 0.7, 0.8, 0.9), (0.9, 0.9)])
def test_what_is_to_be_reached_is_named_where_no_curve_is(successes: tuple[float, ...]) -> None:
    points = tuple(CurvePoint(num_episodes=50 * number, success=success) for number, success in enumerate(successes))
    text = draw_curve(Curve(train=points, bar=0.8, bar_label="goal of the quickstart"), 66, 16).plain
    assert " goal of the quickstart " in text


def test_version_labels_never_overlap() -> None:
    marks = tuple(VersionMark(num_episodes=n, version=n) for n in range(1, 200))
    labels = draw_curve(Curve(versions=marks, num_expected=200), 60, 8).plain.split("\n")[-1].split()
    assert labels[-2:] == ["200", "episodes"]
    assert all(int(label[1:]) for label in labels[:-2])


def test_a_summary_line_says_where_the_run_stands() -> None:
    line = summary_line(_VIEW)
    for shown in ("3:41 learning", "iteration 9 43 %", "episodes 2,496", "success, last 256 84 %", "policy-1 restarted 2x"):
        assert shown in line
    assert "\n" not in line


@pytest.mark.anyio
@pytest.mark.parametrize("terminal", [True, False])
async def test_the_last_frame_stays_behind(terminal: bool) -> None:
    output = io.StringIO()
    console = Console(width=100, height=30, file=output, force_terminal=terminal, _environ={"TERM": "xterm"})
    view = _VIEW
    async with dashboard(lambda: view, console):
        view = View(title="t", phases=("only",), phase=1, metrics=Metrics(num_episodes=777))
    assert "episodes 777" in Text.from_ansi(output.getvalue()).plain
