"""What the quickstart's terminal tells in each phase."""

import io
import time

import msgspec
import pytest
from rich.console import Console

from bus.memory import MemoryBus
from bus.subjects import Subjects
from ops.monitor.dashboard import render
from ops.monitor.run_watch import Evaluation, RunWatch
from ops.monitor.view import Progress
from ops.processes.supervisor import RoleStatus
from ops.quickstart.display import PHASES, QuickstartDisplay
from ops.quickstart.recipe import WarmStart
from schemas.bus_config import BusConfig
from schemas.ids import PolicyVersion, RunName, WorkerId
from schemas.messages import Heartbeat, Role
from tests.builders import judgement, task, trajectory

RUN = RunName("shown")
WARM_START = WarmStart(target_success=0.5, num_kept_out=80, updates_between=5, max_updates=100, learning_rate=2e-3)


@pytest.fixture
def display() -> QuickstartDisplay:
    shown = QuickstartDisplay(
        title="quickstart",
        num_demonstrations=40,
        num_train=800,
        num_evaluation=225,
        warm_start=WARM_START,
        bar=0.8,
        max_staleness=1,
    )
    shown.watch = RunWatch(MemoryBus(Subjects(RUN)), Subjects(RUN), BusConfig(run=RUN))
    return shown


def told(display: QuickstartDisplay, phase: str) -> list[Progress]:
    display.phase = PHASES.index(phase)
    return list(display.view().progress)


def test_every_phase_shows_how_far_it_is(display: QuickstartDisplay) -> None:
    assert [progress.label for phase in PHASES for progress in told(display, phase)] == [
        "tasks and model",
        "demonstrations",
        "until learning begins",
        "training episodes",
        "training episodes",
    ]


def test_the_warm_start_is_measured_by_what_it_is_to_reach(display: QuickstartDisplay) -> None:
    assert display.watch is not None
    metrics = {"updates": 30.0, "loss": 0.5, "success": 0.25}
    beat = Heartbeat(role=Role.TRAINER, at=0.0, worker=WorkerId("warm-start"), state="training", metrics=metrics)
    display.watch.state.apply(beat, now=0.0)
    (progress,) = told(display, "warm start")
    assert (progress.done, progress.share) == (25.0, 0.5)
    assert progress.note == "loss 0.500, 30 updates, 25 % succeed"


def drawn(display: QuickstartDisplay, width: int, height: int) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(render(display.view(), width, height))
    return capture.get().splitlines()


SIZES = [(80, 24), (120, 40), (200, 50)]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_demonstrations_show_what_is_played(display: QuickstartDisplay, width: int, height: int) -> None:
    assert display.watch is not None
    display.phase = PHASES.index("demonstrations")
    assert "the oracle is about to play" in "\n".join(drawn(display, width, height))
    for number in range(60):
        page = f"miniwob:page-{number % 20:02}?seed={number}"
        played = msgspec.structs.replace(task(f"t{number}"), website=page, instruction=f"press {number}\x1b[2J " + "x" * 300)
        display.watch.state.apply(judgement(trajectory(played, num_steps=2)), now=0.0)
    lines = drawn(display, width, height)
    text = "\n".join(lines)
    for expected in ("● demonstrations", "miniwob:page-00", " 3", "newest", "✓ 2 steps  press 59", "episodes", "60"):
        assert expected in text
    assert "\x1b[2J" not in text
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_warm_start_shows_its_loss_and_how_near_it_is(display: QuickstartDisplay, width: int, height: int) -> None:
    assert display.watch is not None
    display.phase = PHASES.index("warm start")
    assert "it imitates the demonstrations" in "\n".join(drawn(display, width, height))
    for number in range(1, 9):
        metrics = {"updates": 5.0 * number, "loss": 4.0 / number, "success": 0.05 * number}
        beat = Heartbeat(role=Role.TRAINER, at=0.0, worker=WorkerId("warm-start"), state="training", metrics=metrics)
        display.watch.state.apply(beat, now=0.0)
        display.view()
    lines = drawn(display, width, height)
    text = "\n".join(lines)
    for expected in ("loss 0.500", "enough to learn from reward", "40 updates", "50 %"):
        assert expected in text
    bars = display.view().progress[0].note.split(",")[0].split()[-1]
    assert (bars[0], bars[-1], len(bars)) == ("█", "▁", 8)
    assert "episodes" not in text
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_goal_is_named_on_its_line(display: QuickstartDisplay, width: int, height: int) -> None:
    assert display.watch is not None
    display.phase = PHASES.index("learning")
    for number in range(64):
        display.watch.state.apply(judgement(trajectory(task(f"t{number}"))), now=0.0)
    lines = drawn(display, width, height)
    assert any("80 %┤┄┄ goal of the quickstart ┄" in line for line in lines)
    assert "learning" in lines[0]
    assert max(map(len, lines)) <= width


def test_an_evaluation_round_is_shown_until_it_is_over(display: QuickstartDisplay) -> None:
    assert display.watch is not None
    evaluations = display.watch.state.evaluations
    evaluations[PolicyVersion(0)] = Evaluation(num_judged=225, num_scored=200, num_successes=100)
    evaluations[PolicyVersion(10)] = Evaluation(num_judged=45, num_scored=40, num_successes=30)
    _, round_ = told(display, "learning")
    assert (round_.label, round_.share, round_.note) == ("evaluating version 10", 0.2, "success 0.75")


def test_roles_that_were_started_here_and_have_ended_are_not_shown_as_started_by_hand(display: QuickstartDisplay) -> None:
    assert display.watch is not None
    for worker in ("demo-browser-1", "browser-9"):
        beat = Heartbeat(role=Role.BROWSER, at=time.time(), worker=WorkerId(worker), state="working")
        display.watch.state.apply(beat, now=0.0)
    display.statuses.by_name["demo-browser-1"] = RoleStatus(role=Role.BROWSER, name="demo-browser-1")
    assert [(row.worker, row.note) for row in display.view().roles] == [
        ("demo-browser-1", ""),
        ("browser-9", "started by hand"),
    ]
    display.statuses.by_name.clear()
    assert [row.worker for row in display.view().roles] == ["browser-9"]
