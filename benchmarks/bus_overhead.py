"""What one step costs on the bus: observation published -> action received, with no time spent on a policy.

    python -m benchmarks.bus_overhead [--steps 1000]

One process plays the browser, another the policy, each with its role's own key, over a server of their own. An episode's first
step is queued for any policy; every later one is offered to the worker that answered last. The baseline, in the same run, is a
plain NATS request with the same screenshot and an answer of the same size.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import numpy as np
import psutil
from matplotlib.axes import Axes

from benchmarks.plain_requests import answer, plain_requests
from benchmarks.report import BASELINE, OURS, RESULTS, TARGET, Report
from bus import chain, chain_state
from bus.address import ServerAddress
from bus.background import background
from bus.chain import EpisodeChain
from bus.handoff import Handoff
from bus.jetstream import JetStreamBus, connect
from bus.ports import WorkQueue
from bus.server import address_of, server_process
from bus.settlement import settle
from bus.subjects import Subjects
from bus.topology import step_queue
from ops.run.logs import quiet_logs
from ops.run.streams import create_streams
from schemas.bus_config import BusConfig
from schemas.ids import EpisodeId, GroupId, PolicyVersion, RunName, TaskId, WorkerId
from schemas.messages import AnyMessage, Observation, Screenshot, Split, StepWake, Task

RUN = RunName("bench")
SUBJECTS = Subjects(RUN)
CONFIG = BusConfig(run=RUN)
POLICY = WorkerId("policy")
SIZES_KB = (128, 400)
WARM_UP = 20
STEP_CPU_MS = 250.0
"""Processor time that a step of a real page is meant to take, browser and screenshot included."""


@dataclass(frozen=True)
class Row:
    path: str
    screenshot_kb: int
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    """A step, of both processes and the server together."""
    share_of_a_steps_cpu: float


@dataclass
class Meter:
    """Times steps, and the processor time of everybody who takes part."""

    processes: Sequence[psutil.Process]
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._cpu = self._spent()

    def _spent(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self.processes)

    def row(self, path: str, screenshot_kb: int) -> Row:
        cpu_ms = 1e3 * (self._spent() - self._cpu) / len(self.seconds)
        kept = sorted(self.seconds[WARM_UP:])
        p99 = kept[min(len(kept) - 1, int(0.99 * len(kept)))]
        return Row(path, screenshot_kb, 1e3 * statistics.median(kept), 1e3 * p99, cpu_ms, cpu_ms / STEP_CPU_MS)


def _task(name: str) -> Task:
    return Task(
        run=RUN,
        episode=EpisodeId(f"train-r0000-{name}-m0"),
        group=GroupId("group"),
        task=TaskId("task"),
        split=Split.TRAIN,
        index=0,
        policy_version=PolicyVersion(0),
        instruction="measure",
        website="none",
        max_steps=1,
    )


def _screenshot(screenshot_kb: int) -> bytes:
    return os.urandom(screenshot_kb * 1000)


async def _play(
    admin: JetStreamBus, bus: JetStreamBus, screenshot_kb: int, num_steps: int, meter: Meter, *, sticky: bool
) -> Row:
    task = _task(f"p{screenshot_kb}-{'sticky' if sticky else 'any'}")
    await chain.admit(admin, SUBJECTS, task)
    owned = await EpisodeChain.take(bus, SUBJECTS, task, WorkerId("browser"))
    assert isinstance(owned, EpisodeChain)
    screenshot = Screenshot(data=_screenshot(screenshot_kb), media_type="image/jpeg", width=1280, height=768)
    async with bus.listen(SUBJECTS.live(task.episode, owned.attempt)) as actions:
        for step in range(num_steps):
            seen = Observation(episode=task.episode, attempt=owned.attempt, step=step, screenshot=screenshot, url="", title="")
            began = time.perf_counter()
            seq = await owned.observe(seen)
            wake = StepWake(episode=task.episode, attempt=owned.attempt, step=step, observation_seq=seq)
            if sticky:
                assert await bus.offer(SUBJECTS.wake(POLICY), wake, timeout_s=5)
            else:
                await bus.append(SUBJECTS.steps, SUBJECTS.step_any(Split.TRAIN, task.episode, owned.attempt, step), wake)
            record = await anext(actions)
            meter.seconds.append(time.perf_counter() - began)
            owned.answered(record.seq)
    return meter.row("chain, offered" if sticky else "chain, queued", screenshot_kb)


async def _ask_plainly(folder: Path, server: psutil.Process, screenshot_kb: int, num_steps: int) -> Row:
    screenshot = _screenshot(screenshot_kb)
    async with plain_requests(folder) as client:
        meter = Meter((psutil.Process(), client.answering, server))
        for _ in range(num_steps):
            began = time.perf_counter()
            await client.ask(screenshot)
            meter.seconds.append(time.perf_counter() - began)
        return meter.row("plain request", screenshot_kb)


async def _measure(num_steps: int) -> list[Row]:
    rows = list[Row]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with server_process(folder, (CONFIG,)) as started:
            await create_streams(started.address, CONFIG)
            server = psutil.Process(started.pid)
            async with _connected(started.address) as admin, _connected(address_of(folder, role="browser")) as bus:
                for screenshot_kb in SIZES_KB:
                    rows.append(await _ask_plainly(folder, server, screenshot_kb, num_steps))
                    async with _policy_process(folder) as policy:
                        for sticky in (True, False):
                            meter = Meter((psutil.Process(), policy, server))
                            rows.append(await _play(admin, bus, screenshot_kb, num_steps, meter, sticky=sticky))
    return rows


@asynccontextmanager
async def _connected(address: ServerAddress) -> AsyncIterator[JetStreamBus]:
    async with connect(address, SUBJECTS, CONFIG, name="benchmark") as bus:
        yield bus


# the other process ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _policy_process(folder: Path) -> AsyncIterator[psutil.Process]:
    command = [sys.executable, "-m", "benchmarks.bus_overhead", "--policy", str(folder)]
    async with await anyio.open_process(command, stderr=None) as process:
        assert process.stdout is not None
        await process.stdout.receive()
        try:
            yield psutil.Process(process.pid)
        finally:
            process.kill()


async def _policy(folder: Path) -> None:
    queue = step_queue(SUBJECTS, CONFIG, Split.TRAIN)
    async with _connected(address_of(folder, role="policy")) as bus, background(partial(_answer_queued, bus, queue)):
        await _answer_offered(bus)


async def _answer_queued(bus: JetStreamBus, queue: WorkQueue) -> None:
    async with bus.work(queue, prefetch=0) as inbox:
        async for delivery in inbox:
            async with settle(bus, delivery, POLICY):
                await _answer_step(bus, delivery.message)


async def _answer_offered(bus: JetStreamBus) -> None:
    taken = Handoff[AnyMessage]()

    def take(message: AnyMessage) -> bool:
        taken.put(message)
        return True

    async with bus.offers(SUBJECTS.wake(POLICY), take):
        print("ready", flush=True)
        async for message in taken:
            await _answer_step(bus, message)


async def _answer_step(bus: JetStreamBus, wake: AnyMessage) -> None:
    assert isinstance(wake, StepWake)
    seen = await chain_state.last(bus, SUBJECTS, wake.episode)
    assert seen is not None
    assert seen.seq == wake.observation_seq
    await chain.answer(bus, SUBJECTS, wake.observation_seq, answer(wake.episode, wake.attempt, wake.step))


# the figures ------------------------------------------------------------------------------------------------------------


def _draw(rows: Sequence[Row], axes: Axes) -> None:
    positions = np.arange(len(rows))
    colours = [BASELINE if row.path == "plain request" else OURS for row in rows]
    axes.bar(positions - 0.2, [row.p50_ms for row in rows], 0.4, color=colours, label="p50")
    axes.bar(positions + 0.2, [row.p99_ms for row in rows], 0.4, color=colours, alpha=0.45, label="p99")
    for target_ms in (3.0, 15.0):
        axes.axhline(target_ms, color=TARGET, linestyle="--", linewidth=1.0)
    axes.set_xticks(positions, [f"{row.path}\n{row.screenshot_kb} KB" for row in rows], fontsize=8)
    axes.set_ylabel("ms per step (p50 solid, p99 light; lines: targets)")


@quiet_logs()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--policy", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.policy is not None:
        anyio.run(_policy, options.policy, backend_options={"use_uvloop": True})
        return
    rows = anyio.run(_measure, options.steps, backend_options={"use_uvloop": True})
    Report(
        name="bus_overhead",
        title="Bus overhead of one step",
        rows=rows,
        notes=(
            "targets: p50 3 ms, p99 15 ms, 5 % of a step's processor time",
            f"a step's processor time is taken as {STEP_CPU_MS:.0f} ms: browser, screenshot and page of a real site",
        ),
        draw=partial(_draw, rows),
    ).publish(options.out)


if __name__ == "__main__":
    main()
