"""Learning in every configuration that there is a name for: quickstarts with real Chromium, vLLM and DeepSpeed.

    python -m benchmarks.learning --out learning                        # hours on two cores; what is there is not done again
    python -m benchmarks.learning --out learning --configurations grpo miniwob_grpo --seeds 0

Configurations of one family begin from the same model, tasks and warm start, unless they read or answer otherwise. What was
interrupted goes on where it was. Prints a table; writes `learning.json` and the curves. Success is on held-out pages, sampled
at temperature 1.
"""

import argparse
import json
import shutil
import signal
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from benchmarks.learning_configurations import CONFIGURATIONS, Configuration
from benchmarks.report import TARGET, Report
from ops.config.agreement import require_agreement
from ops.processes.role_process import millrace_command, millrace_environment
from ops.quickstart.recipe import FAMILIES, lesson_config

_LIMIT_S = 2400.0
_STOPPING_S = 30.0
_MATERIAL = ("tasks", "model", "warm")
_COLOURS = ("#1b7f9e", "#2e8b3d", "#8e44ad", "#b03a2e", "#7f6000", "#555555")
_OVERRIDES = (
    "feeder_config.eval_every=4",
    "env_config.test_tasks_repeat_times=2",
    # Rounds beside training must not wait for it.
    "browser_config.eval_share=0.5",
)


@dataclass(frozen=True)
class Row:
    configuration: str
    shows: str
    seed: int
    warm_start: float
    final: float
    best: float
    """Of all evaluation rounds."""
    loop_seconds: float
    bar: str
    reached_after_s: float | None
    """The first evaluation at or above the bar; None: none was."""
    verdict: str
    """learns: at or above the bar at the end, within its time; late: after it; below: not at all."""
    steps_per_episode: float
    """Of the last evaluation."""
    trajectories: int
    versions: int
    max_mismatch: float
    parse_rate: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the runs' folders go")
    parser.add_argument(
        "--configurations", nargs="+", choices=CONFIGURATIONS, default=tuple(CONFIGURATIONS), metavar="NAME", help="(all)"
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2), metavar="N")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="of every run's configuration")
    options = parser.parse_intermixed_args()
    for name in options.configurations:
        _require_known(CONFIGURATIONS[name], options.overrides)
    rows: list[Row] = []
    curves: dict[str, list[list[tuple[float, float]]]] = {}
    for seed in options.seeds:
        for name in options.configurations:
            configuration = CONFIGURATIONS[name]
            figures = _played(options.out / f"seed{seed}", configuration, seed, options.overrides)
            rows.append(_row(configuration, figures))
            points = [(round_["seconds"], round_["success"]) for round_ in figures["held_out"]]
            curves.setdefault(name, []).append(points)
            rows.sort(key=lambda row: (tuple(CONFIGURATIONS).index(row.configuration), row.seed))
            Report("learning", "Learning, two cores", rows, _notes(rows), draw=lambda axes: _draw(axes, curves)).publish(
                options.out
            )


def _played(folder: Path, configuration: Configuration, seed: int, overrides: Sequence[str]) -> dict[str, Any]:
    """The result of one quickstart, which is played unless it has been."""
    run, start = folder / configuration.name, folder / "starts" / configuration.start
    if not (run / "result.json").exists():
        if start.is_dir() and not run.is_dir():
            _copy(start, run)
        _play(run, configuration, seed, overrides)
    if not start.is_dir():
        _copy(run, start)
    found: dict[str, Any] = json.loads((run / "result.json").read_text(encoding="utf-8"))
    return found


def _copy(source: Path, target: Path) -> None:
    """Model, tasks and warm start; all of them, or nothing is there."""
    unfinished = target.with_suffix(".part")
    for name in _MATERIAL:
        shutil.copytree(source / name, unfinished / name, dirs_exist_ok=True)
    unfinished.rename(target)


def _overridden(configuration: Configuration, overrides: Sequence[str]) -> list[str]:
    return [*_OVERRIDES, *configuration.overrides, *overrides]


def _require_known(configuration: Configuration, overrides: Sequence[str]) -> None:
    """Raises `ConfigurationError`: now, not after hours."""
    family = FAMILIES[configuration.family]
    asked = [f"feeder_config.mode={configuration.mode}", *_overridden(configuration, overrides)]
    require_agreement(lesson_config(family, configuration.objective, asked))


def _play(folder: Path, configuration: Configuration, seed: int, overrides: Sequence[str]) -> None:
    """To its end. Raises `SystemExit` when the quickstart failed, and `TimeoutExpired` when it does not end."""
    folder.mkdir(parents=True, exist_ok=True)
    asked = ["--family", configuration.family, "--objective", configuration.objective, "--mode", configuration.mode]
    command = millrace_command(
        ["quickstart", "--run-dir", str(folder), "--seed", str(seed), *asked, *_overridden(configuration, overrides)]
    )
    print(f"{configuration.name}, seed {seed}: {folder}", flush=True)
    with folder.with_suffix(".txt").open("wb") as output:
        process = subprocess.Popen(command, env=millrace_environment(), stdout=output, stderr=subprocess.STDOUT)
        try:
            process.wait(_LIMIT_S)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(_STOPPING_S)
    if process.returncode:
        raise SystemExit(f"the quickstart in {folder} ended with {process.returncode}: see {folder.with_suffix('.txt')}")


def _row(configuration: Configuration, figures: Mapping[str, Any]) -> Row:
    held_out, bar = figures["held_out"], configuration.bar
    warm, final = held_out[0]["success"], held_out[-1]["success"]
    reached = [round_["seconds"] for round_ in held_out[1:] if bar.reached(warm, round_["success"])]
    in_time = figures["loop_seconds"] <= 60 * bar.minutes
    learnt = [page["after"] for page in figures["pages"] if page["learnt"]]
    return Row(
        configuration=configuration.name,
        shows=configuration.shows,
        seed=figures["seed"],
        warm_start=warm,
        final=final,
        best=max(round_["success"] for round_ in held_out),
        loop_seconds=figures["loop_seconds"],
        bar=str(bar),
        reached_after_s=reached[0] if reached else None,
        verdict=("learns" if in_time else "late") if bar.reached(warm, final) else "below",
        steps_per_episode=statistics.mean(page["steps"] for page in learnt) if learnt else 1.0,
        trajectories=figures["num_trajectories"],
        versions=figures["num_versions"],
        max_mismatch=figures["max_mismatch"],
        parse_rate=figures["parse_rate"],
    )


def _notes(rows: Sequence[Row]) -> list[str]:
    notes = ["Seconds are those of the loop: from starting the five roles, vLLM's start included."]
    for name in dict.fromkeys(row.configuration for row in rows):
        mine = [row for row in rows if row.configuration == name]
        gains = [row.final - row.warm_start for row in mine]
        notes.append(f"{name}: mean gain {statistics.mean(gains):+.2f} over {len(mine)} seeds, the least {min(gains):+.2f}.")
    return notes


def _draw(axes: Axes, curves: dict[str, list[list[tuple[float, float]]]]) -> None:
    for (name, runs), colour in zip(sorted(curves.items()), cycle(_COLOURS), strict=False):
        for index, points in enumerate(runs):
            seconds, success = zip(*points, strict=True)
            label = name if index == 0 else None
            axes.plot(seconds, success, color=colour, linewidth=1.5, marker="o", markersize=3, alpha=0.8, label=label)
    axes.axhline(0.8, color=TARGET, linestyle="--", linewidth=1.0)
    axes.set(xlabel="seconds of the loop", ylabel="held-out success", ylim=(0.0, 1.0))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    axes.grid(axis="y", color="#e8e8e8", linewidth=0.8)
    axes.legend(loc="lower right", frameon=False)


if __name__ == "__main__":
    main()
