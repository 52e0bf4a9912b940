"""What volume costs: episodes per second, processor time per step and memory with 100, 1,000 and 10,000 episodes live at once.

    python -m benchmarks.throughput [--live 100,1000,10000]

All roles are the real ones, in processes of their own, with simulated pages and answers; every step puts a screenshot on the
bus. The baseline, in the same run, moves the same screenshots and answers between two processes as plain NATS requests.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import psutil
from matplotlib.axes import Axes

from benchmarks.plain_requests import plain_requests
from benchmarks.report import BASELINE, OURS, RESULTS, Report
from bus.server import server_process
from ops.audit.feed import Feed
from ops.audit.ledger import Kind, read_ledger
from ops.audit.promises import check
from ops.run.logs import quiet_logs
from schemas.messages import Role
from tests.support.drills.simulated_run import simulated_run

_BROWSERS = 2
_SCREENSHOT_KB = 16
_MEAN_STEPS = 4
_LIMIT_S = 560.0
_PLAIN_STEPS = 20_000
_PLAIN_AT_ONCE = 100


@dataclass(frozen=True)
class Row:
    path: str
    live: int
    """Episodes at once."""
    episodes: int
    seconds: float
    steps_per_s: float
    cpu_ms_per_step: float
    """Of all processes together, the server included."""
    server_mib: float
    browsers_mib: float
    policy_mib: float
    lost: int
    duplicates: int


def overrides(live: int, episodes: int) -> list[str]:
    return [
        f"env_config.train_tasks_rollout_size={episodes}",
        f"env_config.server_size={-(-live // _BROWSERS)}",
        "env_config.train_difficulty_max_steps={easy: 30, medium: 30, hard: 30}",
        "feeder_config.num_iterations=1",
        f"feeder_config.max_concurrent={episodes}",
        "policy_config.max_num_seqs=256",
        "bus_config.task_ack_wait_s=60",
        f"simulation_config.mean_steps={_MEAN_STEPS}",
        f"simulation_config.screenshot_kb={_SCREENSHOT_KB}",
        "simulation_config.step_latency_ms=500",
        "simulation_config.policy_latency_ms=500",
    ]


async def measure(live: int, episodes: int) -> Row:
    with tempfile.TemporaryDirectory() as name:
        crew = {Role.BROWSER: _BROWSERS, Role.POLICY: 1, Role.JUDGE: 1}
        async with simulated_run(Path(name), overrides(live, episodes), crew) as run:
            await run.play(_LIMIT_S)
            ledger = await read_ledger(run.bus, run.subjects)
    found = check(ledger, feed=Feed.of(run.config))
    num_steps = sum(link.kind is Kind.ANSWER for chain in ledger.chains.values() for link in chain)
    peak = run.usage.peak_mib
    return Row(
        path="millrace",
        live=live,
        episodes=episodes,
        seconds=run.seconds,
        steps_per_s=num_steps / run.seconds,
        cpu_ms_per_step=1e3 * sum(run.usage.cpu_s.values()) / num_steps,
        server_mib=peak["nats-server"],
        browsers_mib=peak["browser"],
        policy_mib=peak["policy"],
        lost=(episodes - found.num_tasks) + len(found.unfinished) + len(found.unpublished) + len(found.unjudged),
        duplicates=found.num_duplicates,
    )


async def measure_plain() -> Row:
    screenshot = os.urandom(_SCREENSHOT_KB * 1024)
    with tempfile.TemporaryDirectory() as name:
        async with server_process(Path(name)) as server, plain_requests(Path(name)) as client:
            processes = (psutil.Process(), client.answering, psutil.Process(server.pid))
            cpu, began = _cpu_s(processes), time.monotonic()

            async def ask() -> None:
                for _ in range(_PLAIN_STEPS // _PLAIN_AT_ONCE):
                    await client.ask(screenshot)

            async with anyio.create_task_group() as group:
                for _ in range(_PLAIN_AT_ONCE):
                    group.start_soon(ask)
            seconds, cpu = time.monotonic() - began, _cpu_s(processes) - cpu
            asking, answering, serving = (process.memory_info().rss / 2**20 for process in processes)
    return Row(
        path="plain requests",
        live=_PLAIN_AT_ONCE,
        episodes=0,
        seconds=seconds,
        steps_per_s=_PLAIN_STEPS / seconds,
        cpu_ms_per_step=1e3 * cpu / _PLAIN_STEPS,
        server_mib=serving,
        browsers_mib=asking,
        policy_mib=answering,
        lost=0,
        duplicates=0,
    )


def _cpu_s(processes: Sequence[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def _draw(rows: Sequence[Row], axes: Axes) -> None:
    ours = [row for row in rows if row.path == "millrace"]
    live = [row.live for row in ours]
    axes.plot(live, [row.cpu_ms_per_step for row in ours], "o-", color=OURS, label="millrace, every promise kept")
    plain = next(row.cpu_ms_per_step for row in rows if row.path != "millrace")
    axes.axhline(plain, color=BASELINE, linestyle="--", label="plain requests, nothing stored")
    axes.set(xscale="log", xlabel="episodes live at once", ylabel="processor ms per step", ylim=(0, None))
    axes.legend(frameon=False)


async def _rows(live: Sequence[int]) -> list[Row]:
    rows = [await measure_plain()]
    for number in live:
        rows.append(await measure(number, max(number, 1000)))
    return rows


@quiet_logs()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--live", default="100,1000,10000", help="episodes at once (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    live = [int(number) for number in options.live.split(",")]
    rows = anyio.run(_rows, live, backend_options={"use_uvloop": True})
    Report(
        name="throughput",
        title="Simulated episodes on one machine",
        rows=rows,
        notes=(
            f"a step is one screenshot of {_SCREENSHOT_KB} KB, one answer and their records; memory is the peak of each role",
        ),
        draw=partial(_draw, rows),
    ).publish(options.out)


if __name__ == "__main__":
    main()
