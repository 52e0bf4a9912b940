"""Versions an hour: the real roles in both of their modes, beside the schedules of others, in one simulated world.

    python -m benchmarks.pipeline [--versions 12]        # about twenty-five minutes

The world is AsyncWebRL's as far as that is published, one minute of its in two seconds: 1,280 sessions for batches of 1,024
episodes (here an eighth of both), eleven minutes of collecting a batch when no session ever waits, heavy tails, 1.6 minutes
of training. How long it takes to put a version in place is not published: fifteen seconds here, for everybody. Latencies are
drawn beforehand, so that the same episodes can be scheduled on paper, without any overhead.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path

import anyio
from matplotlib.axes import Axes

from benchmarks.report import BASELINE, OURS, RESULTS, TARGET, Report
from benchmarks.utilisation import admitted
from ops.audit.audit import audit
from ops.planning.schedules import Episode, Training, duration, published
from ops.run.logs import quiet_logs
from schemas.messages import Role
from tests.support.drills.simulated_run import SimulatedRun, simulated_run

_MINUTE_S = 2.0
"""Of the world's, here."""
_SLOTS, _BATCH, _AHEAD = 160, 128, 2
_TRAINING = Training(batch=_BATCH, train_s=1.6 * _MINUTE_S, pause_s=0.25 * _MINUTE_S, ahead=_AHEAD)
_ENOUGH, _GRACE_S = 0.95, 0.5 * _MINUTE_S
"""WebGym's."""
_STEP_SIZE = 64
_MEAN_STEPS = 8
_SETTLED = 3
"""The first versions are those of an empty pool, the last ones those of a pool that runs dry: they are left out."""
_LIMIT_S = 1500.0
_CREW = {Role.BROWSER: 2, Role.POLICY: 2, Role.JUDGE: 1, Role.TRAINER: 1}


@dataclass(frozen=True)
class Row:
    schedule: str
    how: str
    """measured: the real roles; on paper: without any overhead."""
    minutes_a_version: float
    """Of the world's."""
    versions_an_hour: float
    times_synchronous: float
    """As fast as a synchronous schedule on paper that waits for every episode."""
    trajectories: int


def overrides(mode: str, num_versions: int) -> list[str]:
    num_updates = _BATCH * _MEAN_STEPS // _STEP_SIZE
    return [
        f"feeder_config.mode={mode}",
        f"feeder_config.num_iterations={num_versions}",
        f"feeder_config.max_staleness={_AHEAD}",
        f"feeder_config.max_concurrent={_SLOTS}",
        f"env_config.train_tasks_rollout_size={_BATCH}",
        f"env_config.server_size={_SLOTS // _CREW[Role.BROWSER]}",
        "env_config.train_difficulty_max_steps={easy: 20, medium: 20, hard: 20}",
        f"policy_config.max_num_seqs={_SLOTS}",
        "browser_config.eval_share=0",
        "algorithm_config.num_train_epochs=1",
        "algorithm_config.replay_iterations=1",
        f"algorithm_config.positive_samples_to_train={num_updates * _STEP_SIZE}",
        "bus_config.task_ack_wait_s=30",
        "simulation_config.tail=exponential",
        "simulation_config.success_share=1",
        f"simulation_config.mean_steps={_MEAN_STEPS}",
        "simulation_config.max_steps=20",
        "simulation_config.step_latency_ms=700",
        "simulation_config.policy_latency_ms=2000",
        f"simulation_config.train_latency_ms={1000 * _TRAINING.train_s / num_updates}",
        f"simulation_config.load_latency_ms={1000 * _TRAINING.pause_s}",
    ]


@dataclass(frozen=True)
class Played:
    times: list[float]
    """When each version was announced, seconds."""
    episodes: list[Episode]
    num_trajectories: int


async def play(mode: str, num_versions: int) -> Played:
    """Raises `SystemExit` when the streams do not hold what was promised."""
    with tempfile.TemporaryDirectory() as name:
        async with simulated_run(Path(name), overrides(mode, num_versions), _CREW) as run:
            await run.play(_LIMIT_S)
            findings = (await audit(run.bus, run.config)).findings
            if not findings.holds:
                raise SystemExit(f"{mode}: the audit does not hold: {findings}")
            return Played(await _announced(run), await admitted(run), findings.num_trajectories)


async def _announced(run: SimulatedRun) -> list[float]:
    """Of all versions that were trained, in order."""
    records = await run.bus.history(run.subjects.checkpoints, run.subjects.everything("checkpoint"))
    return [record.time_s for record in sorted(records, key=lambda record: record.seq)][1:]


def minutes_a_version(times: Sequence[float]) -> float:
    """Of the world's; of versions between the first ones and the last."""
    settled = times[_SETTLED - 1 : len(times) - _AHEAD]
    return (settled[-1] - settled[0]) / (len(settled) - 1) / _MINUTE_S


async def measure(num_versions: int) -> list[Row]:
    ours, turns = await play("async", num_versions), await play("sync", num_versions)
    episodes = ours.episodes
    synchronous = replace(_TRAINING, ahead=0)
    on_paper = {
        "no session ever waits": [
            sum(map(duration, episodes)) / len(episodes) * _BATCH / _SLOTS * number for number in range(1, num_versions + 1)
        ],
        "AsyncWebRL's: all pause for a version": published(episodes, _SLOTS, _TRAINING),
        "WebGym's: 95 % and half a minute": published(
            episodes, _SLOTS, replace(synchronous, enough=_ENOUGH, grace_s=_GRACE_S)
        ),
        "synchronous, waiting for every episode": published(episodes, _SLOTS, synchronous),
    }
    found = [("millrace, asynchronous", "measured", ours.times), ("millrace, synchronous", "measured", turns.times)]
    found += [(name, "on paper", times) for name, times in on_paper.items()]
    slowest = minutes_a_version(on_paper["synchronous, waiting for every episode"])
    numbers = {"millrace, asynchronous": ours.num_trajectories, "millrace, synchronous": turns.num_trajectories}
    rows = [
        Row(name, how, each := minutes_a_version(times), 60 / each, slowest / each, numbers.get(name, len(episodes)))
        for name, how, times in found
    ]
    return sorted(rows, key=lambda row: row.minutes_a_version)


def _draw(rows: Sequence[Row], axes: Axes) -> None:
    colours = [OURS if row.how == "measured" else TARGET if at == 0 else BASELINE for at, row in zip(count(), rows)]
    bars = axes.barh([row.schedule for row in rows], [row.minutes_a_version for row in rows], color=colours)
    axes.bar_label(bars, [f"{row.minutes_a_version:.1f} min" for row in rows], padding=4)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("minutes a version")


@quiet_logs()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", type=int, default=12)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.versions < (least := _SETTLED + _AHEAD + 1):
        parser.error(f"--versions {options.versions} leaves none between the first and the last: write {least} or more")
    rows = anyio.run(measure, options.versions, backend_options={"use_uvloop": True})
    Report(
        name="pipeline",
        title=f"{options.versions} versions of {_BATCH} heavy-tailed episodes in {_SLOTS} sessions",
        rows=rows,
        notes=(
            "targets: at least 2.9x a synchronous schedule (AsyncWebRL's figure against WebGym), and ahead of AsyncWebRL's",
            "on paper: from the latencies of the very episodes that were measured, without any overhead",
        ),
        draw=partial(_draw, rows),
    ).publish(options.out)


if __name__ == "__main__":
    main()
