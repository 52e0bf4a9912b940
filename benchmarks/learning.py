"""Learning by every objective: quickstarts that begin from the same warm start, real Chromium, vLLM and DeepSpeed.

    python -m benchmarks.learning --out learning                        # hours on two cores; what is there is not done again
    python -m benchmarks.learning --out learning --objectives grpo --seeds 0

Prints a table; writes `learning.json` and the curves. Success is on held-out pages, sampled at temperature 1.
"""

import argparse
import json
import shutil
import signal
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from benchmarks.report import TARGET, Report
from ops.config.recipes import objective_names
from ops.processes.role_process import millrace_command, millrace_environment

MAX_WARM_START = 0.45
_LIMIT_S = 1800.0
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
class Bar:
    """What an objective has to reach, and in how many seconds of the loop."""

    seconds: float
    final: float = 0.0
    gain: float = 0.0

    def reached(self, warm: float, success: float) -> bool:
        return success >= self.final and success - warm >= self.gain


BARS = {
    "cloning": Bar(480.0, final=0.80),
    "grpo": Bar(900.0, gain=0.30),
    "rloo": Bar(900.0, gain=0.15),
    "reinforce_plus_plus": Bar(900.0, gain=0.15),
    "ppo": Bar(900.0, gain=0.15),
}


@dataclass(frozen=True)
class Row:
    objective: str
    seed: int
    warm_start: float
    final: float
    best: float
    """Of all evaluation rounds."""
    loop_seconds: float
    bar: str
    reached_after_s: float | None
    """The first evaluation at or above the bar; None: none was."""
    trajectories: int
    versions: int
    max_mismatch: float
    parse_rate: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the runs' folders go")
    parser.add_argument("--objectives", nargs="+", choices=objective_names(), default=tuple(BARS), metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2), metavar="N")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="of every run's configuration")
    options = parser.parse_intermixed_args()
    rows: list[Row] = []
    curves: dict[str, list[list[tuple[float, float]]]] = {}
    for seed in options.seeds:
        material = options.out / f"seed{seed}" / "cloning"
        for objective in ("cloning", *(name for name in options.objectives if name != "cloning")):
            folder = options.out / f"seed{seed}" / objective
            if not (folder / "result.json").exists():
                _play(folder, material, objective, seed, options.overrides)
            if objective in options.objectives:
                figures = json.loads((folder / "result.json").read_text(encoding="utf-8"))
                rows.append(_row(objective, figures))
                points = [(round_["seconds"], round_["success"]) for round_ in figures["held_out"]]
                curves.setdefault(objective, []).append(points)
                Report("learning", "Learning from the same warm start, two cores", rows, _notes(rows)).publish(options.out)
    Report(
        "learning",
        "Learning from the same warm start, two cores",
        sorted(rows, key=lambda row: (row.objective, row.seed)),
        _notes(rows),
        draw=lambda axes: _draw(axes, curves),
    ).publish(options.out)


def _play(folder: Path, material: Path, objective: str, seed: int, overrides: Sequence[str]) -> None:
    """One quickstart, to its end. The first of a seed makes the model, the tasks and the warm start that the others copy."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _MATERIAL:
        if folder != material and not (folder / name).exists():
            shutil.copytree(material / name, folder / name)
    command = millrace_command(
        ["quickstart", "--run-dir", str(folder), "--seed", str(seed), "--objective", objective, *_OVERRIDES, *overrides]
    )
    print(f"{objective}, seed {seed}: {folder}", flush=True)
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


def _row(objective: str, figures: dict[str, object]) -> Row:
    held_out = figures["held_out"]
    assert isinstance(held_out, list)
    bar, warm = BARS.get(objective), held_out[0]["success"]
    reached = [r["seconds"] for r in held_out[1:] if bar is not None and bar.reached(warm, r["success"])]
    return Row(
        objective=objective,
        seed=int(str(figures["seed"])),
        warm_start=warm,
        final=held_out[-1]["success"],
        best=max(r["success"] for r in held_out),
        loop_seconds=float(str(figures["loop_seconds"])),
        bar=_sentence(bar) if bar is not None else "",
        reached_after_s=reached[0] if reached else None,
        trajectories=int(str(figures["num_trajectories"])),
        versions=int(str(figures["num_versions"])),
        max_mismatch=float(str(figures["max_mismatch"])),
        parse_rate=float(str(figures["parse_rate"])),
    )


def _sentence(bar: Bar) -> str:
    wanted = f"{bar.final:.2f}" if bar.final else f"+{bar.gain:.2f}"
    return f"{wanted} in {bar.seconds / 60:g} min"


def _notes(rows: Sequence[Row]) -> list[str]:
    notes = ["Seconds are those of the loop: from starting the five roles, vLLM's start included."]
    if worst := max((row.warm_start for row in rows), default=0.0):
        notes.append(f"The best warm start is {worst:.2f}; at most {MAX_WARM_START:.2f} is allowed.")
    for objective in dict.fromkeys(row.objective for row in rows):
        mine = [row for row in rows if row.objective == objective]
        gains = [row.final - row.warm_start for row in mine]
        notes.append(
            f"{objective}: mean gain {statistics.mean(gains):+.2f} over {len(mine)} seeds, the least {min(gains):+.2f}."
        )
    return notes


def _draw(axes: Axes, curves: dict[str, list[list[tuple[float, float]]]]) -> None:
    for (objective, runs), colour in zip(sorted(curves.items()), _COLOURS * 2, strict=False):
        for index, points in enumerate(runs):
            seconds, success = zip(*points, strict=True)
            label = objective if index == 0 else None
            axes.plot(seconds, success, color=colour, linewidth=1.5, marker="o", markersize=3, alpha=0.8, label=label)
    axes.axhline(0.8, color=TARGET, linestyle="--", linewidth=1.0)
    axes.set(xlabel="seconds of the loop", ylabel="held-out success", ylim=(0.0, 1.0))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    axes.grid(axis="y", color="#e8e8e8", linewidth=0.8)
    axes.legend(loc="lower right", frameon=False)


if __name__ == "__main__":
    main()
