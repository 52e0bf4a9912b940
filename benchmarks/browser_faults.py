"""Kills (SIGKILL) the browser, a renderer and the driver in mid-episode, then plays on and on to see what grows.

    python -m benchmarks.browser_faults [--kills 50] [--episodes 1000]

One browser worker with a real Chromium on the whole bus path. A kill comes while the worker waits for the policy, or at a
random moment of the step after an answer; every second episode has a context of its own. `noticed` is the time from the kill
until the trajectory that says why is on the stream. After each kill the same slot plays another episode.
"""

import argparse
import os
import random
import signal
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import psutil

from benchmarks.browser_memory import SLOTS, Sample, draw, growth, soak
from benchmarks.report import RESULTS, Report
from benchmarks.scripted_worker import VIEWPORT, Answer, ScriptedWorker, pids, scripted_worker, task
from browser_workers.chromium.process.processes import Part
from ops.run.logs import quiet_logs
from schemas.messages import Action, ActionKind, Observation, Outcome, Trajectory

_KILL_AT_STEP = 2
_IN_STEP_S = 0.1
"""A kill in the midst of a step comes within so many seconds of its answer."""
_GONE_S = 5.0
_DRIVER_HEAP_MIB = 64
_SUITES = ("demo", "fresh")
_HOVER = Action(kind=ActionKind.HOVER, point=(500.0, 500.0))
_REASONS = {
    Part.BROWSER: "the browser ended while it was in use",
    Part.PAGE: "the page crashed",
    Part.DRIVER: "the browser's driver ended while it was in use",
}


@dataclass(frozen=True)
class FaultRow:
    killed: str
    kills: int
    noticed_p50_s: float
    noticed_max_s: float
    """Target: 1 s."""
    reason_recorded: int
    took_the_browser: int
    """Of the pages: Chromium's main process ended with them, by itself, which is then the reason."""
    steps_kept: int
    next_normal: int
    """Episodes after it, on the same slot, that the oracle won."""


@dataclass
class Script:
    """Hovers over the page and then, as the oracle, clicks what it asks for; kills on the way where it is told to."""

    victim: Part | None = None
    at_once: bool = True
    """Before the answer, not after it."""
    delay_s: float = 0.0
    killed_at: float = 0.0
    """Monotonic seconds; 0: not yet."""

    async def play(self, observation: Observation, answer: Answer) -> None:
        if observation.step < _KILL_AT_STEP:
            await answer(_HOVER)
        elif self.victim is None:
            await answer(_oracle(observation))
        elif not self.killed_at:
            victims = pids(self.victim)
            if not self.at_once:
                await answer(_HOVER)
                await anyio.sleep(self.delay_s)
            self.killed_at = time.monotonic()
            for pid in victims:
                os.kill(pid, signal.SIGKILL)


def _oracle(observation: Observation) -> Action:
    if observation.oracle is None:
        raise LookupError("the page names no target")
    x, y, width, height = observation.oracle
    return Action(kind=ActionKind.CLICK, point=((x + width / 2) / VIEWPORT[0] * 1000, (y + height / 2) / VIEWPORT[1] * 1000))


@dataclass
class Drill:
    """All kills of one kind."""

    part: Part
    ends: list[tuple[Trajectory, float]] = field(default_factory=list)
    """With the seconds from kill to record."""
    next_ends: list[Trajectory] = field(default_factory=list)

    async def kill(self, worker: ScriptedWorker, script: Script, number: int, chance: random.Random) -> None:
        suite = _SUITES[len(self.ends) % 2]
        script.victim, script.killed_at = self.part, 0.0
        script.at_once, script.delay_s = bool(len(self.ends) // 2 % 2), chance.uniform(0.0, _IN_STEP_S)
        ((ended, at),) = await worker.play([task(number, suite)])
        self.ends.append((ended, at - script.killed_at))
        script.victim = None
        ((following, _),) = await worker.play([task(number + 1, suite)])
        self.next_ends.append(following)

    def row(self) -> FaultRow:
        seconds = sorted(noticed for _, noticed in self.ends)
        failed = [trajectory for trajectory, _ in self.ends if trajectory.outcome is Outcome.FAILED]
        is_page = self.part is Part.PAGE
        consequences = sum(is_page and trajectory.error == _REASONS[Part.BROWSER] for trajectory in failed)
        return FaultRow(
            killed=self.part.value,
            kills=len(self.ends),
            noticed_p50_s=seconds[len(seconds) // 2],
            noticed_max_s=seconds[-1],
            reason_recorded=sum(trajectory.error == _REASONS[self.part] for trajectory in failed) + consequences,
            took_the_browser=consequences,
            steps_kept=sum(trajectory.num_steps >= _KILL_AT_STEP for trajectory in failed),
            next_normal=sum((end.outcome, end.environment_reward) == (Outcome.DONE, 1.0) for end in self.next_ends),
        )


async def faults(num_kills: int, folder: Path) -> list[FaultRow]:
    script, chance, drills = Script(), random.Random(0), [Drill(part) for part in _REASONS]
    async with scripted_worker(folder, script.play, num_slots=1) as worker:
        for index in range(num_kills):
            for offset, drill in enumerate(drills):
                await drill.kill(worker, script, 2 * (index * len(drills) + offset), chance)
    return [drill.row() for drill in drills]


def left_over(before: set[psutil.Process], folder: Path) -> tuple[int, int]:
    """Processes, once those that end had their time, and files."""
    others = set(psutil.Process().children(recursive=True)) - before
    _, alive = psutil.wait_procs(others, timeout=_GONE_S)
    return len(alive), sum(1 for _ in folder.iterdir())


async def _run(num_kills: int, num_episodes: int) -> tuple[list[FaultRow], list[Sample], tuple[int, int]]:
    before = set(psutil.Process().children(recursive=True))
    with tempfile.TemporaryDirectory() as servers, tempfile.TemporaryDirectory() as scratch:
        # What anybody leaves in the folder for temporary files is seen there.
        os.environ["TMPDIR"] = scratch
        rows = await faults(num_kills, Path(servers) / "faults") if num_kills else []
        samples: list[Sample] = []
        if num_episodes:
            # What the driver's collector puts off is no leak, and one would end the driver.
            os.environ["NODE_OPTIONS"] = f"--max-old-space-size={_DRIVER_HEAP_MIB}"
            async with scripted_worker(Path(servers) / "soak", Script().play, num_slots=SLOTS) as worker:
                samples = await soak(worker, num_episodes, first=1_000_000)
        return rows, samples, await anyio.to_thread.run_sync(left_over, before, Path(scratch))


@quiet_logs()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="of each kind")
    parser.add_argument("--episodes", type=int, default=1000, help="in a row, half of them with a context of their own")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows, samples, (processes, files) = anyio.run(_run, options.kills, options.episodes, backend_options={"use_uvloop": True})
    left = f"left over at the end: {processes} processes, {files} temporary files"
    if rows:
        Report(
            name="browser_faults",
            title="Killed in mid-episode",
            rows=rows,
            notes=("target: noticed within 1 s, with the reason and the steps; the next episode is won", left),
        ).publish(options.out)
    if samples:
        Report(
            name="browser_memory",
            title="Memory over episodes in a row",
            rows=growth(samples),
            notes=(
                "slopes are of what comes after each half's first fifth",
                f"the driver's heap is bounded to {_DRIVER_HEAP_MIB} MiB, so that it is collected in time",
                left,
            ),
            draw=partial(draw, samples),
        ).publish(options.out)


if __name__ == "__main__":
    main()
