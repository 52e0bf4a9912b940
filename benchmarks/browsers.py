"""What a browser step costs: bare Playwright, this project's browser alone, and the whole path through the bus.

    python -m benchmarks.browsers [--sessions 1,4,8,16] [--systems bare-png,bare-jpeg,alone,bus]

Every system plays the same 20 steps per session (benchmarks/browser_schedule.py) on the same local site with one Chromium.
Processor time and memory are those of all processes of a system: driver, Chromium, worker, and for `bus` nats-server and the
policy worker too. The site's own server is not counted.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream
from matplotlib.axes import Axes

from benchmarks.browser_player import SYSTEMS, Played
from benchmarks.browser_schedule import Kind
from benchmarks.browser_site import browser_site
from benchmarks.process_usage import ProcessUsage
from benchmarks.report import BASELINE, OURS, RESULTS, TARGET, Report
from benchmarks.through_bus import seconds_by_phase, whole_path
from bus.background import background
from ops.run.logs import quiet_logs

_BUS = "bus"
_CPU_TARGET_S = 0.25
_LINES = {"bare-png": (BASELINE, ":"), "bare-jpeg": (BASELINE, "-"), "alone": (OURS, "--"), _BUS: (OURS, "-")}


@dataclass(frozen=True)
class Row:
    system: str
    sessions: int
    steps: int
    steps_per_s: float
    cpu_s_per_step: float
    pss_mib_per_session: float
    """The largest sum seen, everything included."""
    reset_ms: float
    act_ms: float
    observe_ms: float
    policy_ms: float | None
    """From an observation that is there to its answer, through the bus."""
    click_p50_ms: float | None
    """A click that does not navigate, with the look behind it."""


@dataclass
class Measured:
    cpu_s: float = 0.0
    seconds: float = 0.0


@contextmanager
def measured(usage: ProcessUsage) -> Iterator[Measured]:
    found, cpu_s, began = Measured(), usage.cpu_s(), monotonic()
    yield found
    found.cpu_s, found.seconds = usage.cpu_s() - cpu_s, monotonic() - began


def num_episodes(num_sessions: int) -> int:
    """Enough for a steady state, and every session plays at least twice."""
    return max(4, 2 * num_sessions)


async def measure_player(system: str, site: str, num_sessions: int) -> Row:
    episodes = num_episodes(num_sessions)
    command = [sys.executable, "-m", "benchmarks.browser_player", system, site, str(num_sessions), str(episodes)]
    async with await anyio.open_process(command, stderr=None) as process:
        lines = _lines(process)
        assert await anext(lines) == "ready"
        usage = ProcessUsage([process.pid])
        async with background(usage.watch):
            with measured(usage) as found:
                await _say(process, "play")
                played = msgspec.json.decode(await anext(lines), type=Played)
        await _say(process, "end")
        await process.wait()
    mean = {phase: statistics.fmean(seconds) for phase, seconds in played.phases.items()}
    clicks = played.steps[Kind.PANEL.value]
    return _row(system, num_sessions, played.num_steps, found, usage, mean, statistics.median(clicks))


async def measure_bus(site: str, num_sessions: int) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        async with whole_path(Path(folder), site, num_sessions) as path:
            # The first episode finds files and code cold: it is nobody's figure.
            await path.play(range(1))
            usage = ProcessUsage(path.pids)
            async with background(usage.watch):
                with measured(usage) as found:
                    trajectories = await path.play(range(1, 1 + num_episodes(num_sessions)))
    steps = sum(trajectory.num_steps for trajectory in trajectories)
    return _row(_BUS, num_sessions, steps, found, usage, seconds_by_phase(trajectories), None)


def _row(
    system: str, sessions: int, steps: int, found: Measured, usage: ProcessUsage, mean: dict[str, float], click_s: float | None
) -> Row:
    return Row(
        system=system,
        sessions=sessions,
        steps=steps,
        steps_per_s=steps / found.seconds,
        cpu_s_per_step=found.cpu_s / steps,
        pss_mib_per_session=usage.peak_pss_mib / sessions,
        reset_ms=mean["reset"] * 1000,
        act_ms=mean["act"] * 1000,
        observe_ms=mean["observe"] * 1000,
        policy_ms=mean["policy"] * 1000 if "policy" in mean else None,
        click_p50_ms=click_s * 1000 if click_s is not None else None,
    )


async def _say(process: Process, word: str) -> None:
    assert process.stdin is not None
    await process.stdin.send(f"{word}\n".encode())


async def _lines(process: Process) -> AsyncIterator[str]:
    assert process.stdout is not None
    rest = ""
    async for text in TextReceiveStream(process.stdout):
        *whole, rest = (rest + text).split("\n")
        for line in whole:
            yield line


def draw(rows: Sequence[Row], axes: Axes) -> None:
    for system, (colour, line) in _LINES.items():
        mine = [row for row in rows if row.system == system]
        if mine:
            sessions, seconds = [row.sessions for row in mine], [row.cpu_s_per_step for row in mine]
            axes.plot(sessions, seconds, line, color=colour, marker="o", label=system)
    axes.axhline(_CPU_TARGET_S, color=TARGET, linewidth=1, label="target at 8 sessions")
    axes.set_xlabel("sessions")
    axes.set_ylabel("CPU seconds per step")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def notes(rows: Sequence[Row]) -> list[str]:
    by = {(row.system, row.sessions): row for row in rows}
    said = [f"target: at most {_CPU_TARGET_S} CPU-s per step at 8 sessions through the bus, and within 15 % of bare-jpeg"]
    for sessions in sorted({row.sessions for row in rows}):
        bare, ours = by.get(("bare-jpeg", sessions)), by.get((_BUS, sessions))
        if bare and ours:
            spent, baseline = ours.cpu_s_per_step, bare.cpu_s_per_step
            said.append(
                f"{sessions} sessions: {spent:.3f} against {baseline:.3f} CPU-s per step: {spent / baseline:.2f} times"
            )
    return said


async def main(systems: Sequence[str], sessions: Sequence[int], out: Path) -> None:
    rows = []
    with browser_site() as site:
        for count in sessions:
            for system in systems:
                print(f"{system}, {count} sessions ...", flush=True)
                measuring = measure_bus(site, count) if system == _BUS else measure_player(system, site, count)
                rows.append(await measuring)
    title = "Cost of a browser step"
    Report("browsers", title, rows, notes(rows), partial(draw, rows)).publish(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", default="1,4,8,16")
    parser.add_argument("--systems", default=",".join((*SYSTEMS, _BUS)))
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the figures")
    asked = parser.parse_args()
    with quiet_logs():
        anyio.run(main, asked.systems.split(","), [int(count) for count in asked.sessions.split(",")], asked.out)
