"""Training speed beside Hugging Face's Trainer and TRL's GRPOTrainer: the same samples, model, order and hyperparameters.

    python -m benchmarks.training_speed [--steps 60] [--rounds 3] [--threads 1 2] [--objective cloning grpo]

The quickstart's tiny model in float32: AdamW, constant rate, gradients clipped to norm 1, 32 samples a step. Cloning is
compared with Hugging Face's Trainer; GRPO, clipped against the policy at the beginning, with TRL's (pip install --no-deps
trl==1.16.0), which is given samples where it would sample. For all sides screenshots are preprocessed before the clock starts;
timed are collating, forward and backward passes, clipping, the optimizer and reading the loss. The sides take turns, each in a
process of its own: a busy machine slows all.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from benchmarks.report import BASELINE, OURS, RESULTS, Report

BATCH = 32
NUM_SAMPLES = 640
LEARNING_RATE = 1e-3
WARM_UP_STEPS = 5
_MILLRACE = "benchmarks.training_millrace"
_SIDES = {
    "cloning": {"hugging_face": ["benchmarks.training_hugging_face"], "millrace": [_MILLRACE]},
    "grpo": {"trl": ["benchmarks.training_trl"], "millrace": [_MILLRACE, "--policy-gradient"]},
}
"""By objective; the first side is the baseline."""


def advantage(index: int) -> float:
    """Of sample `index` of a policy gradient."""
    return 1.0 if index % 2 else -0.5


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
    objective: str
    trainer: str
    threads: int
    tokens_per_s: float
    samples_per_s: float
    step_ms: float
    cpu_ms_a_step: float
    times_baseline: float
    largest_loss_difference: float
    """Of any step, to the baseline: relative, with the same distribution, of cloning; absolute, with the control tokens in
    TRL's, of GRPO, whose losses cross 0."""


def run_side(objective: str, side: str, model: Path, *, threads: int, steps: int, curve: bool = False) -> Run:
    """Trains in a process of its own. `curve`: with the same distribution on both sides, for the losses alone."""
    module, *arguments = _SIDES[objective][side]
    command = [sys.executable, "-m", module, str(model), str(threads), str(steps), *arguments, *(["--curve"] if curve else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{side} failed: {done.stderr[-2000:]}")
    return Run(**json.loads(done.stdout.splitlines()[-1]))


def measure(objective: str, model: Path, *, threads: int, steps: int, rounds: int) -> list[Row]:
    sides = _SIDES[objective]
    runs: dict[str, list[Run]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, done in runs.items():
            done.append(run_side(objective, side, model, threads=threads, steps=steps))
    baseline = next(iter(sides))
    base = statistics.median(run.tokens / run.seconds for run in runs[baseline])
    if objective == "cloning":
        differences = _loss_differences(model, threads=threads, steps=steps)
    else:
        theirs = np.array(runs[baseline][0].losses)
        differences = {side: float(np.abs(np.array(done[0].losses) - theirs).max()) for side, done in runs.items()}
    rows = []
    for side, done in runs.items():
        speed = statistics.median(run.tokens / run.seconds for run in done)
        step_s = statistics.median(run.seconds for run in done) / steps
        rows.append(
            Row(
                objective=objective,
                trainer=side,
                threads=threads,
                tokens_per_s=speed,
                samples_per_s=BATCH / step_s,
                step_ms=1e3 * step_s,
                cpu_ms_a_step=1e3 * statistics.median(run.cpu_seconds for run in done) / steps,
                times_baseline=speed / base,
                largest_loss_difference=differences[side],
            )
        )
    return rows


def _loss_differences(model: Path, *, threads: int, steps: int) -> dict[str, float]:
    curves = {
        side: np.array(run_side("cloning", side, model, threads=threads, steps=steps, curve=True).losses)
        for side in _SIDES["cloning"]
    }
    return {side: float(np.abs(losses / curves["hugging_face"] - 1).max()) for side, losses in curves.items()}


def _require_trl() -> None:
    if find_spec("trl") is None:
        sys.exit("GRPO is compared with TRL: pip install --no-deps trl==1.16.0, or leave it out with --objective cloning")


def _draw(rows: Sequence[Row], axes: Axes) -> None:
    colours = [OURS if row.trainer == "millrace" else BASELINE for row in rows]
    names = [f"{row.trainer}\n{row.objective}\n{row.threads} threads" for row in rows]
    axes.bar(names, [row.tokens_per_s for row in rows], color=colours)
    axes.set_ylabel("tokens per second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--objective", nargs="+", choices=_SIDES, default=list(_SIDES))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    from ops.gpu_check.drawn_pages import build_model

    if "grpo" in options.objective:
        _require_trl()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        build_model(Path(name))
        for objective in options.objective:
            for threads in options.threads:
                rows += measure(objective, Path(name), threads=threads, steps=options.steps, rounds=options.rounds)
    Report(
        name="training_speed",
        title="Training speed with the tiny model",
        rows=rows,
        notes=(
            "target: 1.5 times the baseline",
            f"{BATCH} samples of about 45 tokens per step, a screenshot of 48 patches; medians over {options.rounds} rounds",
            "losses are compared where both leave out the control tokens that are never sampled; timed, theirs is plain",
            "TRL computes every token's entropy beside, whatever it is told",
        ),
        draw=lambda axes: _draw(rows, axes),
    ).publish(options.out)


if __name__ == "__main__":
    main()
