"""What grows while one browser worker plays episode after episode: memory, processes, descriptors, tasks."""

import asyncio
import gc
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread
import psutil
from matplotlib.axes import Axes

from benchmarks.report import BASELINE, OURS, TARGET
from benchmarks.scripted_worker import SUITES, ScriptedWorker, task
from browser_workers.chromium.process.memory import pss_mib
from schemas.messages import Outcome

SLOTS = 4
_BATCH = 10
_WARM_UP = 0.2
"""Share of each half before its slope is taken."""


@dataclass(frozen=True)
class Sample:
    suite: str
    episodes: int
    """Since the beginning of all."""
    seconds: float
    won: int
    worker_mib: float
    driver_mib: float
    chromium_mib: float
    processes: int
    descriptors: int
    tasks: int


@dataclass(frozen=True)
class GrowthRow:
    suite: str
    episodes: int
    won: int
    episodes_a_s: float
    worker_mib: float
    """At the end."""
    driver_mib: float
    chromium_mib: float
    worker_mib_per_100: float
    """Slope after the warm-up; so with the next two."""
    driver_mib_per_100: float
    chromium_mib_per_100: float
    processes: str
    """Smallest and largest after the warm-up; so with the others."""
    descriptors: str
    tasks: str


async def soak(worker: ScriptedWorker, num_episodes: int, *, first: int) -> list[Sample]:
    """Plays the same number of episodes of each suite, and looks after every few."""
    samples: list[Sample] = []
    began = time.monotonic()
    for part, suite in enumerate(SUITES):
        for start in range(0, num_episodes // len(SUITES), _BATCH):
            begun = part * (num_episodes // len(SUITES)) + start
            ended = await worker.play([task(first + begun + index, suite) for index in range(_BATCH)])
            won = sum((end.outcome, end.environment_reward) == (Outcome.DONE, 1.0) for end, _ in ended)
            samples.append(await _sample(suite, begun + _BATCH, time.monotonic() - began, won))
    return samples


async def _sample(suite: str, episodes: int, seconds: float, won: int) -> Sample:
    # Garbage that waits for the collector is no leak.
    gc.collect()
    me = psutil.Process()
    others = [child for child in me.children(recursive=True) if "nats" not in child.name()]
    memory = {"node": 0.0}
    for child in others:
        kind = "node" if "node" in child.name() else "chromium"
        memory[kind] = memory.get(kind, 0.0) + await anyio.to_thread.run_sync(pss_mib, child.pid)
    return Sample(
        suite=suite,
        episodes=episodes,
        seconds=seconds,
        won=won,
        worker_mib=await anyio.to_thread.run_sync(pss_mib, me.pid),
        driver_mib=memory["node"],
        chromium_mib=sum(memory.values()) - memory["node"],
        processes=len(others),
        descriptors=me.num_fds(),
        tasks=len(asyncio.all_tasks()),
    )


def growth(samples: Sequence[Sample]) -> list[GrowthRow]:
    return [_growth([sample for sample in samples if sample.suite == suite]) for suite in SUITES]


def _growth(samples: Sequence[Sample]) -> GrowthRow:
    steady = samples[int(_WARM_UP * len(samples)) :]
    last = samples[-1]
    seconds = last.seconds - samples[0].seconds
    return GrowthRow(
        suite=last.suite,
        episodes=_BATCH * len(samples),
        won=sum(sample.won for sample in samples),
        episodes_a_s=_BATCH * (len(samples) - 1) / seconds if seconds else 0.0,
        worker_mib=last.worker_mib,
        driver_mib=last.driver_mib,
        chromium_mib=last.chromium_mib,
        worker_mib_per_100=_slope([(sample.episodes, sample.worker_mib) for sample in steady]),
        driver_mib_per_100=_slope([(sample.episodes, sample.driver_mib) for sample in steady]),
        chromium_mib_per_100=_slope([(sample.episodes, sample.chromium_mib) for sample in steady]),
        processes=_range([sample.processes for sample in steady]),
        descriptors=_range([sample.descriptors for sample in steady]),
        tasks=_range([sample.tasks for sample in steady]),
    )


def _slope(points: Sequence[tuple[int, float]]) -> float:
    """Of the line through the points (least squares), for 100 episodes; 0 for a single point."""
    if len(points) < 2:
        return 0.0
    episodes, memory = zip(*points, strict=True)
    return 100.0 * statistics.linear_regression(episodes, memory).slope


def _range(values: Sequence[int]) -> str:
    return f"{min(values)} to {max(values)}"


def draw(samples: Sequence[Sample], axes: Axes) -> None:
    episodes = [sample.episodes for sample in samples]
    axes.plot(episodes, [sample.chromium_mib for sample in samples], color=OURS, label="Chromium")
    axes.plot(episodes, [sample.driver_mib for sample in samples], color=TARGET, label="its driver")
    axes.plot(episodes, [sample.worker_mib for sample in samples], color="#555555", label="worker")
    for suite in SUITES:
        start = next(sample.episodes for sample in samples if sample.suite == suite) - _BATCH
        label = "a tab kept for 100 episodes" if suite == "demo" else "a context per episode"
        axes.axvline(start, color=BASELINE, linewidth=0.8, linestyle=":")
        axes.annotate(label, (start, 1.0), xycoords=("data", "axes fraction"), xytext=(4, -10), textcoords="offset points")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("episodes")
    axes.set_ylabel("PSS, MiB")
    axes.legend(frameon=False, loc="lower right")
