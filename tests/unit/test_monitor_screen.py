"""The terminal view: every size holds it, and what comes from outside stays text."""

import io
import math
from dataclasses import replace

import msgspec
import pytest
from rich.console import Console

from bus.ports import QueueDepth, Record
from ops.monitor.alerts.alert import Alert, Condition, Key, Severity
from ops.monitor.cells import Cells
from ops.monitor.queues import QueueState
from ops.monitor.screen.cell_grid import cell_grid
from ops.monitor.screen.frame import Shown, View, frame, summary_line
from ops.monitor.state import MonitorState
from schemas.config import Config
from schemas.ids import WorkerId
from schemas.messages import AnyMessage, EpisodeStart, Heartbeat, Role, Split, StepPhase, Task
from tests.builders import judgement, task, trajectory

CONFIG = Config()
SIZES = [(80, 24), (120, 40), (100, 30), (119, 40), (120, 30), (200, 50)]


def state(*, num_live: int = 500) -> MonitorState:
    made = MonitorState(CONFIG.monitor_config, began_at=0.0)
    for role in (Role.FEEDER, Role.BROWSER, Role.POLICY, Role.JUDGE, Role.TRAINER):
        beat = Heartbeat(
            role=role, worker=WorkerId(f"{role.value}-1"), state="working", at=99.0, metrics={"slots": 8.0}, note="[red]x[/]"
        )
        store(made, beat)
    for name, role in (("browsers_train", Role.BROWSER), ("policies_train", Role.POLICY), ("judges_r", Role.JUDGE)):
        queue = made.queues[name] = QueueState(name, "s", role)
        queue.note(QueueDepth(7, 3, 0, 0), oldest_s=12.0, now=99.0, window_s=300.0)
    for number in range(num_live):
        one = task(f"t{number}", max_steps=200)
        made.heard(Record("", "x", 0, one), 1.0)
        if number % 2:
            made.heard(Record("", "x", 0, phase(one, 120)), 2.0)
    for number in range(64):
        store(made, judgement(trajectory(task(f"old{number}"), num_steps=3)))
    return made


def store(of: MonitorState, message: AnyMessage) -> None:
    of.stored(Record("s", "x", 1, message, 99.0), 99.0)


def phase(of: Task, step: int) -> StepPhase:
    return StepPhase(episode=of.episode, attempt=1, step=step, phase="deciding", worker=WorkerId("b"))


def alert(number: int, severity: Severity = Severity.WARNING) -> Alert:
    condition = Condition(key=Key("k", str(number)), severity=severity, sentence=f"sentence {number}", remedy="do this")
    return Alert(condition=condition, since=90.0)


def drawn(shown: Shown, width: int, height: int) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(frame(shown, width, height))
    return capture.get().splitlines()


def shown(of: MonitorState, *, view: View = View.OVERVIEW, num_alerts: int = 0) -> Shown:
    alerts = [alert(number, Severity.CRITICAL if number == 0 else Severity.WARNING) for number in range(num_alerts)]
    return Shown(state=of, alerts=alerts, config=CONFIG, now=100.0, view=view)


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("num_alerts", [0, 1, 12])
def test_an_overview_fits_and_shows_what_counts(width: int, height: int, num_alerts: int) -> None:
    lines = drawn(shown(state(), num_alerts=num_alerts), width, height)
    text = "\n".join(lines)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    for expected in ("success 100 %", "deciding 250", "queued 250", "browser ", "judges_r", "D121", "and "):
        assert expected in text
    if num_alerts:
        assert "CRITICAL" in text
        assert "sentence 0" in text
    if num_alerts > 1:
        assert "more alerts" in text


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_episodes_fill_the_screen_and_the_rest_is_counted(width: int, height: int) -> None:
    lines = drawn(shown(state(), view=View.EPISODES), width, height)
    cells = sum(line.count("D121") + line.count("q   ") for line in lines[2:])
    columns, rows = width // 5, height - 2
    fitting = 500 if columns * rows >= 500 else columns * (rows - 1)
    assert cells == fitting
    left = sum(int(word) for word in lines[-1].replace(",", "").split() if word.isdecimal()) if fitting < 500 else 0
    assert fitting + left == 500
    assert len(lines) <= height


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("run", ["r", "quickstart", "a-run-of-many-words-" * 6])
@pytest.mark.parametrize("view", View)
def test_the_head_is_whole_and_no_line_is_wider_than_the_terminal(width: int, height: int, run: str, view: View) -> None:
    config = replace(CONFIG, save_path=f"runs/{run}")
    lines = drawn(replace(shown(state(), view=view, num_alerts=12), config=config), width, height)
    assert " ".join(lines[0].split()).endswith("12 alerts 1 overview 2 episodes 3 workers 4 alerts q quit")
    assert run[:10] in lines[0]
    assert max(map(len, lines)) <= width


def test_a_narrow_head_keeps_the_keys() -> None:
    assert drawn(shown(state()), 40, 20)[0].rstrip() == "millrace  no alerts  1  2  3  4  q quit"


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (200, 50)])
@pytest.mark.parametrize("num_live", [0, 30, 500])
def test_the_rows_of_a_terminal_are_used(width: int, height: int, num_live: int) -> None:
    """A few are left where there are few episodes: of the curve there are no half lines."""
    lines = drawn(shown(state(num_live=num_live)), width, height)
    assert height - 2 <= len(lines) <= height


def test_a_large_terminal_shows_workers_versions_and_pages() -> None:
    text = "\n".join(drawn(shown(state(num_live=30)), 200, 50))
    for expected in ("browser-1", "slots 8", "v0", "demo:click_button", "64    100 %      3.0", "page or site, lately"):
        assert expected in text


def test_a_held_out_round_that_is_not_over_says_so() -> None:
    of = state()
    for number in range(8):
        store(of, judgement(trajectory(task(f"e{number}", split=Split.EVAL)), float(number % 2)))
    assert "held-out 50 % v0, 8 episodes" in "\n".join(drawn(shown(of), 80, 24))
    feeder = Heartbeat(role=Role.FEEDER, worker=WorkerId("f"), state="working", at=99.0, metrics={"eval_episodes": 100.0})
    store(of, feeder)
    assert "held-out 50 % v0, 8 of 100" in "\n".join(drawn(shown(of), 80, 24))
    store(of, msgspec.structs.replace(feeder, metrics={"eval_episodes": 8.0}))
    text = "\n".join(drawn(shown(of), 80, 24))
    assert "held-out 50 % v0" in text
    assert "8 of" not in text


def test_trouble_comes_first_and_the_tenth_behind_the_ninth() -> None:
    of = state(num_live=0)
    for number, (name, metrics) in enumerate([("browser-10", {}), ("browser-9", {}), ("judge-2", {"unexpected": 1.0})]):
        role = Role.JUDGE if number == 2 else Role.BROWSER
        store(of, Heartbeat(role=role, worker=WorkerId(name), state="working", at=99.0, metrics=metrics))
    store(of, Heartbeat(role=Role.TRAINER, worker=WorkerId("trainer-1"), state="paused", at=99.0))
    of.stored(Record("s", "x", 1, Heartbeat(role=Role.POLICY, worker=WorkerId("policy-1"), state="x", at=1.0), 80.0), 100.0)
    assert [worker.name for worker in of.workers.by_attention(100.0)] == [
        *("policy-1", "trainer-1", "judge-2"),
        *("feeder-1", "browser-1", "browser-9", "browser-10", "judge-1"),
    ]


def test_every_view_is_drawn_of_nothing() -> None:
    empty = MonitorState(CONFIG.monitor_config, began_at=0.0)
    for view in View:
        for width, height in ((1, 1), (20, 5), (80, 24)):
            assert drawn(shown(empty, view=view), width, height)


def test_words_of_others_are_no_markup() -> None:
    assert "[red]x[/]" in "\n".join(drawn(shown(state(), view=View.WORKERS), 160, 60))


def test_words_of_others_move_no_cursor() -> None:
    """A terminal would obey them."""
    of = state(num_live=0)
    beat = Heartbeat(
        role=Role.JUDGE,
        worker=WorkerId("judge-1"),
        state="\x1b[31mpaused",
        at=99.0,
        note="\x1b]0;owned\x07" + "x" * 5000,
        metrics={"a\x1b[2Jb": math.nan},
    )
    store(of, beat)
    bad = Condition(key=Key("k"), severity=Severity.NOTE, sentence="bad \x9b2J\x1b[2J", remedy="\x1b[2J")
    for view in View:
        given = replace(shown(of, view=view), alerts=[Alert(condition=bad, since=0.0)])
        text = "\n".join(drawn(given, 160, 40))
        assert not {"\x1b", "\x07", "\x9b"} & set(text.replace("\x1b[0m", ""))
        assert not {"\x1b", "\x9b"} & set(summary_line(given))


def test_alerts_say_what_to_do() -> None:
    text = "\n".join(drawn(shown(state(), view=View.ALERTS, num_alerts=2), 100, 30))
    for expected in ("sentence 1", "do this", "docs/operations.md#k"):
        assert expected in text


def test_ended_episodes_show_their_verdict() -> None:
    cells = Cells(keep_s=10.0, capacity=10)
    for name, reward in (("won", 1.0), ("lost", 0.0), ("excluded", None)):
        one = task(name)
        cells.apply(one, 0.0)
        cells.apply(EpisodeStart(episode=one.episode, attempt=1, worker=WorkerId("b")), 0.0)
        ended = msgspec.structs.replace(trajectory(one), num_steps=3)
        cells.apply(judgement(ended, reward), 1.0)
    assert cell_grid(cells, 40, 2)[0].plain == "S  3 F  3 x  3 "


def test_a_line_says_how_the_run_stands() -> None:
    line = summary_line(shown(state(), num_alerts=1))
    assert "\n" not in line
    for expected in ("millrace | episodes judged 64", "250 deciding", "critical: sentence 0"):
        assert expected in line
