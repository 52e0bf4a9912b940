"""How fast one judge worker is, and what of its processor time is bus, journal and budget."""

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
from matplotlib.axes import Axes

from benchmarks.judge_worker import cpu_s, judge_worker, server_pid
from benchmarks.judged_episodes import Kind, ended, noise
from benchmarks.late_endpoint import LateEndpoint, late_endpoint
from benchmarks.report import BASELINE, OURS, Report
from benchmarks.unrecorded_judging import MODEL, NUM_SCREENSHOTS, SCREENSHOT_KB, openai_config
from ops.processes.role_process import millrace_environment
from tests.support.judging.scripted_judging import SUBJECTS, judgements, judging_run

_LATENCY_S: Final = 0.3
_NUM_TRAJECTORIES: Final = {1: 3, 16: 48, 64: 96}
"""By how many are judged at once."""
_LIMIT_S: Final = 120.0
_CLIENT, _JUDGE, _WORKER = "bare client", "judge alone", "worker"


@dataclass(frozen=True)
class Row:
    path: str
    at_once: int
    """Trajectories."""
    trajectories: int
    calls: int
    seconds: float
    trajectories_per_s: float
    calls_per_s: float
    cpu_ms_per_call: float
    """Of the process that asks."""
    server_cpu_ms_per_call: float | None
    """Of the nats-server."""


async def measure() -> list[Row]:
    rows = []
    for at_once, number in _NUM_TRAJECTORIES.items():
        rows.append(await _alone(_CLIENT, at_once, number))
        rows.append(await _alone(_JUDGE, at_once, number))
        rows.append(await _worker(at_once, number))
    return rows


def report(rows: Sequence[Row]) -> Report:
    return Report(
        name="judging_speed",
        title="One judge worker",
        rows=rows,
        notes=(
            f"the endpoint answers after {1000 * _LATENCY_S:.0f} ms; {NUM_SCREENSHOTS} screenshots of {SCREENSHOT_KB} KB, "
            "7 rounds of calls per trajectory",
            f"{_CLIENT}: the same requests, made beforehand, by the openai client; {_JUDGE}: without bus, journal and budget; "
            f"{_WORKER}: the real one on a nats-server, with a budget",
            *_overheads(rows),
        ),
        draw=lambda axes: _draw(rows, axes),
    )


def _overheads(rows: Sequence[Row]) -> Iterator[str]:
    """What the worker takes more than the judge alone: of time for one trajectory at once, else of processor."""
    for at_once in _NUM_TRAJECTORIES:
        of = {row.path: row for row in rows if row.at_once == at_once}
        worker, alone = of[_WORKER], of[_JUDGE]
        more_s = (worker.seconds - alone.seconds) / worker.calls
        more_ms = worker.cpu_ms_per_call - alone.cpu_ms_per_call
        if at_once == 1:
            yield f"at 1: bus, journal and budget take {1000 * more_s:.1f} ms per call"
        else:
            share = more_ms / worker.cpu_ms_per_call
            yield f"at {at_once}: bus, journal and budget take {more_ms:.2f} ms of processor a call, {share:.0%} of all"


async def _alone(path: str, at_once: int, number: int) -> Row:
    async with late_endpoint(_LATENCY_S) as endpoint:
        way = {_CLIENT: "client", _JUDGE: "judge"}[path]
        command = [sys.executable, "-m", "benchmarks.unrecorded_judging", way, endpoint.base_url, str(at_once), str(number)]
        with anyio.fail_after(_LIMIT_S):
            done = await anyio.run_process(command, env=millrace_environment(), stderr=None)
        spent = json.loads(done.stdout)
        return _row(path, at_once, number, endpoint, spent["seconds"], spent["cpu_s"], None)


async def _worker(at_once: int, number: int) -> Row:
    max_concurrent = openai_config("", at_once).max_concurrent
    overrides = (
        f"env_config.evaluation_workers={at_once}",
        f"openai_config.max_concurrent={max_concurrent}",
        f"openai_config.model={MODEL}",
        "judge_config.max_calls=1000000",
    )
    episodes = [ended(Kind.SUCCESS, each, NUM_SCREENSHOTS, noise(SCREENSHOT_KB)) for each in range(number)]
    with tempfile.TemporaryDirectory() as name:
        async with (
            late_endpoint(_LATENCY_S) as endpoint,
            judging_run(Path(name), endpoint.base_url, *overrides) as (folder, bus),
        ):
            for episode in episodes:
                await episode.write_chain(bus, SUBJECTS)
            async with judge_worker(folder, bus, "judge-1") as process:
                cpu, server_cpu, began = cpu_s(process.pid), cpu_s(server_pid()), time.monotonic()
                for episode in episodes:
                    await episode.publish(bus, SUBJECTS)
                with anyio.fail_after(_LIMIT_S):
                    await judgements(bus, number)
                seconds = time.monotonic() - began
                spent, server_spent = cpu_s(process.pid) - cpu, cpu_s(server_pid()) - server_cpu
        return _row(_WORKER, at_once, number, endpoint, seconds, spent, server_spent)


def _row(
    path: str, at_once: int, number: int, endpoint: LateEndpoint, seconds: float, spent: float, server: float | None
) -> Row:
    calls = endpoint.num_requests
    return Row(
        path=path,
        at_once=at_once,
        trajectories=number,
        calls=calls,
        seconds=seconds,
        trajectories_per_s=number / seconds,
        calls_per_s=calls / seconds,
        cpu_ms_per_call=1000 * spent / calls,
        server_cpu_ms_per_call=None if server is None else 1000 * server / calls,
    )


def _draw(rows: Sequence[Row], axes: Axes) -> None:
    styles = {_CLIENT: (BASELINE, "--"), _JUDGE: (BASELINE, "-"), _WORKER: (OURS, "-")}
    for path, (colour, line) in styles.items():
        mine = [row for row in rows if row.path == path]
        at_once, cpu_ms = [row.at_once for row in mine], [row.cpu_ms_per_call for row in mine]
        axes.plot(at_once, cpu_ms, "o", linestyle=line, color=colour, label=path)
    axes.set(xscale="log", xlabel="trajectories judged at once", ylabel="processor ms per call", ylim=(0, None))
    axes.legend(frameon=False)
