"""Training speed beside Hugging Face's Trainer: the same samples, model, order and hyperparameters, in one run.

    python -m benchmarks.training_speed [--steps 60] [--rounds 3] [--threads 1 2]

Filtered cloning of the quickstart's tiny model in float32: AdamW, constant rate, gradients clipped to norm 1, 32 samples a
step. For both sides screenshots are preprocessed before the clock starts; timed are collating, forward and backward passes,
clipping, the optimizer and reading the loss. The sides take turns, each in a process of its own: a busy machine slows both.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from benchmarks.report import BASELINE, OURS, RESULTS, Report

BATCH = 32
NUM_SAMPLES = 640
LEARNING_RATE = 1e-3
WARM_UP_STEPS = 5
_SIDES = {"hugging_face": "benchmarks.training_hugging_face", "millrace": "benchmarks.training_millrace"}


@dataclass(frozen=True)
class Run:
    """One side, once."""

    tokens: int
    """All tokens of the timed steps, padding not counted."""
    completion_tokens: int
    seconds: float
    cpu_seconds: float
    losses: list[float]
    """Of every step, the warm-up's too."""


@dataclass(frozen=True)
class Row:
    trainer: str
    threads: int
    tokens_per_s: float
    samples_per_s: float
    step_ms: float
    cpu_ms_a_step: float
    times_hugging_face: float
    largest_loss_difference: float
    """Of any step, relative, to Hugging Face's Trainer with the same distribution."""


def run_side(side: str, model: Path, *, threads: int, steps: int, curve: bool = False) -> Run:
    """Trains in a process of its own. `curve`: with the same distribution on both sides, for the losses alone."""
    command = [sys.executable, "-m", _SIDES[side], str(model), str(threads), str(steps), *(["--curve"] if curve else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{side} failed: {done.stderr[-2000:]}")
    return Run(**json.loads(done.stdout.splitlines()[-1]))


def measure(model: Path, *, threads: int, steps: int, rounds: int) -> tuple[list[Row], dict[str, list[float]]]:
    runs: dict[str, list[Run]] = {side: [] for side in _SIDES}
    for _ in range(rounds):
        for side, done in runs.items():
            done.append(run_side(side, model, threads=threads, steps=steps))
    curves = {side: run_side(side, model, threads=threads, steps=steps, curve=True).losses for side in _SIDES}
    theirs = np.array(curves["hugging_face"])
    base = statistics.median(run.tokens / run.seconds for run in runs["hugging_face"])
    rows = []
    for side, done in runs.items():
        speed = statistics.median(run.tokens / run.seconds for run in done)
        step_s = statistics.median(run.seconds for run in done) / steps
        rows.append(
            Row(
                trainer=side,
                threads=threads,
                tokens_per_s=speed,
                samples_per_s=BATCH / step_s,
                step_ms=1e3 * step_s,
                cpu_ms_a_step=1e3 * statistics.median(run.cpu_seconds for run in done) / steps,
                times_hugging_face=speed / base,
                largest_loss_difference=float(np.abs(np.array(curves[side]) / theirs - 1).max()),
            )
        )
    return rows, curves


def _draw(rows: Sequence[Row], axes: Axes) -> None:
    colours = [OURS if row.trainer == "millrace" else BASELINE for row in rows]
    axes.bar([f"{row.trainer}\n{row.threads} threads" for row in rows], [row.tokens_per_s for row in rows], color=colours)
    axes.set_ylabel("tokens per second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    from benchmarks.training_samples import build_model

    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        build_model(Path(name))
        for threads in options.threads:
            found, _ = measure(Path(name), threads=threads, steps=options.steps, rounds=options.rounds)
            rows.extend(found)
    Report(
        name="training_speed",
        title="Training speed, cloning with the tiny model",
        rows=rows,
        notes=(
            "target: 1.5 times Hugging Face's Trainer",
            f"{BATCH} samples of about 45 tokens per step, a screenshot of 48 patches; medians over {options.rounds} rounds",
            "losses are compared where both leave out the control tokens that are never sampled; timed, theirs is plain",
        ),
        draw=lambda axes: _draw(rows, axes),
    ).publish(options.out)


if __name__ == "__main__":
    main()
