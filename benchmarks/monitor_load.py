"""What watching costs, and whether it is right: thousands of live episodes, a monitor beside them.

    python -m benchmarks.monitor_load [--live 2000] [--seconds 60]

All roles are the real ones with simulated pages and answers; every step puts a screenshot on the bus. `millrace monitor` runs
in
a process of its own, whose processor time and received bytes are measured from outside. A second monitor, in this process, is
compared with the subjects of the streams, cell by cell, and says how long a message takes to arrive. At last the same for the
page in a browser (`monitor_page.py`).
"""

import argparse
import io
import json
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import anyio
import psutil
from anyio.abc import Process
from rich.console import Console

from benchmarks.monitor_page import PageRow, measure_page
from benchmarks.report import RESULTS, Report
from bus.jetstream import connect
from bus.server import address_of
from ops.monitor.cells import LIVE, Cell, Phase
from ops.monitor.chains import ChainState, chain_state
from ops.monitor.screen.frame import Shown, frame
from ops.monitor.snapshot import Updates
from ops.monitor.watch import MonitorWatch, monitoring
from ops.processes.role_process import millrace_command, millrace_environment
from ops.run.logs import quiet_logs
from schemas.ids import EpisodeId, WorkerId
from schemas.messages import Role, StepPhase
from tests.support.drills.simulated_run import SimulatedRun, simulated_run

_BROWSERS = 2
_SCREENSHOT_KB = 60
_LATENCY_MS = 8000
_LIMIT_S = 900.0
_PROBE_EVERY_S = 0.2
_PROBE_S = 10.0
_CATCH_UP_S = 2.0
_PROBER = WorkerId("probe")


@dataclass(frozen=True)
class Row:
    live: int
    """Episodes that were queued, played or waiting for their judgement when the figures were taken."""
    steps_per_s: float
    screenshots_mb_per_s: float
    cpu_share: float
    """Of one core, of the monitor's process."""
    received_kb_per_s: float
    memory_mib: float
    join_s: float
    """Until a monitor that comes late shows every live episode."""
    lag_p50_ms: float
    lag_p99_ms: float
    """From a phase told to its cell."""
    frame_ms: float
    """One drawing of 200 x 50."""
    update_ms: float
    """One difference as JSON."""
    cells_compared: int
    cells_behind: int
    """At the very moment of the look."""
    cells_wrong: int
    """Two seconds later."""


def overrides(live: int) -> list[str]:
    return [
        f"env_config.train_tasks_rollout_size={live * 4}",
        f"env_config.server_size={-(-live // _BROWSERS)}",
        "env_config.train_difficulty_max_steps={easy: 30, medium: 30, hard: 30}",
        "feeder_config.num_iterations=1",
        f"feeder_config.max_concurrent={live}",
        f"policy_config.max_num_seqs={live}",
        "bus_config.task_ack_wait_s=60",
        "bus_config.step_ack_wait_s=30",
        "simulation_config.mean_steps=8",
        f"simulation_config.screenshot_kb={_SCREENSHOT_KB}",
        f"simulation_config.step_latency_ms={_LATENCY_MS}",
        f"simulation_config.policy_latency_ms={_LATENCY_MS}",
    ]


async def measure(live: int, seconds: float) -> tuple[Row, PageRow]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        crew = {Role.BROWSER: _BROWSERS, Role.POLICY: 1, Role.JUDGE: 1}
        async with simulated_run(folder, overrides(live), crew) as run:
            run.roles.start(Role.FEEDER)
            with anyio.fail_after(_LIMIT_S):
                row = await _measured(run, folder, live, seconds)
                # Behind the others: a browser on the same machine would be in their figures.
                return row, await measure_page(run, folder, live, seconds)


async def _measured(run: SimulatedRun, folder: Path, live: int, seconds: float) -> Row:
    """Behind the start, when as many episodes are played as there are slots."""
    async with _outside(folder) as process:
        began = time.monotonic()
        async with monitoring(run.bus, run.subjects, run.config) as watch:
            await watch.wait_complete()
            await watch.wait_until(lambda state: state.cells.counts()[Phase.QUEUED] == 0 and len(state.cells) >= live)
            await anyio.sleep(10.0)
        began = time.monotonic()
        async with monitoring(run.bus, run.subjects, run.config) as watch:
            await watch.wait_complete()
            join_s = time.monotonic() - began
            lags: list[float] = []
            outside = psutil.Process(process.pid)
            cpu_s, received, steps, began = _cpu_s(outside), await _received(folder), watch.state.steps.total, time.monotonic()
            with anyio.move_on_after(seconds):
                await _probe(folder, run, watch, lags)
            took_s = time.monotonic() - began
            steps_per_s = (watch.state.steps.total - steps) / took_s
            _, behind = await _compare(run, watch, catch_up_s=0.0)
            compared, wrong = await _compare(run, watch, catch_up_s=_CATCH_UP_S)
            return Row(
                live=sum(cell.phase is not Phase.ENDED for cell in watch.state.cells if cell.task),
                steps_per_s=steps_per_s,
                screenshots_mb_per_s=steps_per_s * _SCREENSHOT_KB * 1024 / 1e6,
                cpu_share=(_cpu_s(outside) - cpu_s) / took_s,
                received_kb_per_s=(await _received(folder) - received) / took_s / 1e3,
                memory_mib=outside.memory_info().rss / 2**20,
                join_s=join_s,
                lag_p50_ms=1000 * median(lags),
                lag_p99_ms=1000 * sorted(lags)[int(0.99 * len(lags))],
                frame_ms=_frame_ms(run, watch),
                update_ms=_update_ms(run, watch),
                cells_compared=compared,
                cells_behind=behind,
                cells_wrong=wrong,
            )


@asynccontextmanager
async def _outside(folder: Path) -> AsyncIterator[Process]:
    """`millrace monitor`, which writes a line now and then."""
    command = millrace_command(["monitor", "--run-dir", str(folder)])
    async with await anyio.open_process(command, stdout=subprocess.DEVNULL, env=millrace_environment()) as process:
        try:
            yield process
        finally:
            process.terminate()


def _cpu_s(process: psutil.Process) -> float:
    return sum(process.cpu_times()[:2])


async def _received(folder: Path) -> int:
    """Bytes that the server has sent to the monitor outside."""
    port = json.loads((folder / "server" / "nats.json").read_text())["monitor_port"]

    def ask() -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/connz?limit=1000", timeout=10) as answer:
            connections = json.load(answer)["connections"]
        return sum(connection["out_bytes"] for connection in connections if connection.get("name") == "monitor")

    return await anyio.to_thread.run_sync(ask)


async def _probe(folder: Path, run: SimulatedRun, watch: MonitorWatch, lags: list[float]) -> None:
    """Phases of an episode that there is not, each timed until it is in the state."""
    episode = EpisodeId("probe-r0000-probe-m0")
    address = address_of(folder / "server")
    async with connect(address, run.subjects, run.config.bus_config, name="probe") as bus:
        step = 0
        while True:
            step += 1
            told = StepPhase(episode=episode, attempt=1, step=step, phase="acting", worker=_PROBER)
            began = time.monotonic()
            await bus.tell(run.subjects.phase(_PROBER), told)
            with anyio.fail_after(_PROBE_S):
                await watch.wait_until(partial(_has, episode=episode, step=step))
            lags.append(time.monotonic() - began)
            await anyio.sleep(_PROBE_EVERY_S)


def _has(state: object, *, episode: EpisodeId, step: int) -> bool:
    cells: Mapping[EpisodeId, Cell] = state.cells.by_episode  # type: ignore[attr-defined]
    return episode in cells and cells[episode].step >= step


async def _compare(run: SimulatedRun, watch: MonitorWatch, *, catch_up_s: float) -> tuple[int, int]:
    """Cells, and those that are not between what the streams said so long before and what they say just after."""
    before = await _standings(run)
    await anyio.sleep(catch_up_s)
    cells = {cell.episode: (cell.attempt, cell.step, cell.phase) for cell in watch.state.cells if cell.task}
    after = await _standings(run)
    compared = wrong = 0
    for episode, cell in cells.items():
        if cell[2] not in LIVE or episode not in before or episode not in after:
            continue
        compared += 1
        wrong += not _place(before[episode]) <= _rank(*cell) <= _place(after[episode])
    unknown = [episode for episode, state in before.items() if not state.is_done and episode not in cells]
    return compared + len(unknown), wrong + len(unknown)


async def _standings(run: SimulatedRun) -> dict[EpisodeId, ChainState]:
    subjects = await run.bus.subjects(run.subjects.episodes(0), f"{run.subjects.run}.ep.>")
    by_episode: dict[EpisodeId, list[str]] = {}
    for subject in subjects:
        by_episode.setdefault(EpisodeId(subject.split(".")[3]), []).append(subject)
    return {episode: chain_state(found) for episode, found in by_episode.items()}


def _rank(attempt: int, step: int, phase: Phase) -> tuple[int, int]:
    """Records behind `start`."""
    behind = {Phase.QUEUED: 0, Phase.OPENING: 0, Phase.DECIDING: 2 * step + 1, Phase.ACTING: 2 * step + 2}
    return attempt, behind[phase]


def _place(state: ChainState) -> tuple[int, int]:
    ended = 1_000_000 if state.is_done else 0
    return state.attempt, state.num_observations + state.num_answers + ended


def _frame_ms(run: SimulatedRun, watch: MonitorWatch) -> float:
    console = Console(width=200, height=50, force_terminal=True, color_system="truecolor", file=io.StringIO())
    shown = Shown(state=watch.state, alerts=watch.alerts, config=run.config, now=time.time())
    began = time.monotonic()
    for _ in range(5):
        console.print(frame(shown, 200, 50))
    return 1000 * (time.monotonic() - began) / 5


def _update_ms(run: SimulatedRun, watch: MonitorWatch) -> float:
    """All cells anew: the most that one difference takes."""
    began = time.monotonic()
    for _ in range(5):
        json.dumps(Updates().next(watch.state, watch.alerts, run.config, time.time()))
    return 1000 * (time.monotonic() - began) / 5


async def report(live: int, seconds: float, out: Path) -> None:
    row, page = await measure(live, seconds)
    notes = (
        f"Screenshots of {_SCREENSHOT_KB} KiB are on the bus; a monitor receives none of them.",
        "A cell is wrong when it is not between what the streams' subjects said two seconds before and just after the look.",
    )
    Report("monitor_load", f"A monitor beside {live:,} episodes", [row], notes).publish(out)
    told = "A page is told once a second: half of that is the least that the delay can be at the median."
    Report("monitor_page", f"The monitor's page with {live:,} episodes", [page], (told,)).publish(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--live", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    with quiet_logs():
        anyio.run(report, options.live, options.seconds, options.out)


if __name__ == "__main__":
    main()
