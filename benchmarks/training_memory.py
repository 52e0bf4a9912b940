"""Host memory of two training ranks under ZeRO-3, phase by phase, beside the usual way.

    python -m benchmarks.training_memory                      # 0.5 billion random parameters, float32 and bf16
    python -m benchmarks.training_memory --billions 1 --dtypes bfloat16

Ranks are processes on the CPU with gloo, so that all state is host memory: its anonymous pages are looked at every ten
milliseconds. A rank's share is what ZeRO-3 leaves it: weights, gradients and optimizer, divided by the ranks. The usual way
reads the whole model on every rank before DeepSpeed divides it, and gathers a version's state on rank 0 before it is written.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes

from benchmarks.report import BASELINE, OURS, RESULTS, TARGET, Report
from ops.gpu_check.drawn_pages import build_model
from ops.quickstart.tiny_model import TinyShape

NUM_RANKS = 2
_GIB = float(2**30)
_A_LAYER = 18.4e6
"""Parameters, of `_shape`."""
_BYTES_A_PARAMETER = {"float32": 4 + 4 + 2 * 4, "bfloat16": 2 + 2 + 4 + 3 * 4}
"""Weights, gradients, and the optimizer's: moments alone, or gradients, weights and moments in float32."""
_ALLOWED = 1.3
_TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class Measured:
    """One phase of one rank."""

    phase: str
    peak_bytes: int
    seconds: float
    num_parameters: int
    layer_bytes: int
    """Of the largest layer."""
    written_bytes: int = 0
    """By all ranks."""


@dataclass(frozen=True)
class Row:
    dtype: str
    way: str
    phase: str
    peak_gib: float
    """Of the rank that has most."""
    share_gib: float
    allowed_gib: float
    within: str
    seconds: float
    written_gib: float


def _shape(billions: float) -> TinyShape:
    return TinyShape(
        hidden_size=1280,
        num_layers=round(billions * 1e9 / _A_LAYER),
        feed_forward_size=3840,
        num_heads=40,
        num_key_value_heads=8,
    )


def measure(work: Path, model: Path, dtypes: Sequence[str]) -> Iterator[Row]:
    for dtype in dtypes:
        for way, programs in {"usual": ["usual"], "millrace": ["millrace", "resume"]}.items():
            print(f"{dtype}, {way} ...", flush=True)
            folder = work / f"{dtype}-{way}"
            folder.mkdir()
            for program in programs:
                yield from _rows(dtype, way, _run(folder, model, dtype, program))
            shutil.rmtree(folder)


def _run(folder: Path, model: Path, dtype: str, program: str) -> list[list[Measured]]:
    """By rank."""
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(NUM_RANKS))
    command = [*launcher, "-m", "benchmarks.training_memory_rank", program, dtype, str(model), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    if done.returncode:
        raise RuntimeError(f"{program} failed in {dtype}: {done.stderr[-3000:]}")
    said = [json.loads((folder / f"{program}-rank{rank}.json").read_text()) for rank in range(NUM_RANKS)]
    return [[Measured(**each) for each in rank] for rank in said]


def _rows(dtype: str, way: str, ranks: list[list[Measured]]) -> Iterator[Row]:
    for of_phase in zip(*ranks, strict=True):
        first, peak = of_phase[0], max(each.peak_bytes for each in of_phase)
        share = first.num_parameters * _BYTES_A_PARAMETER[dtype] / NUM_RANKS
        allowed = _ALLOWED * (share + first.layer_bytes + _GIB)
        yield Row(
            dtype,
            way,
            first.phase,
            round(peak / _GIB, 2),
            round(share / _GIB, 2),
            round(allowed / _GIB, 2),
            "yes" if peak <= allowed else "no",
            round(max(each.seconds for each in of_phase), 1),
            round(first.written_bytes / _GIB, 2),
        )


def report(rows: list[Row], billions: float) -> Report:
    def draw(axes: Axes) -> None:
        labels = [f"{row.phase}, {row.dtype}" for row in rows if row.way == "millrace"]
        for offset, way, colour in ((0.2, "usual", BASELINE), (-0.2, "millrace", OURS)):
            mine = {f"{row.phase}, {row.dtype}": row for row in rows if row.way == way}
            places = [place + offset for place, label in enumerate(labels) if label in mine]
            axes.barh(places, [mine[label].peak_gib for label in labels if label in mine], 0.4, color=colour, label=way)
        allowed = [next(row.allowed_gib for row in rows if f"{row.phase}, {row.dtype}" == label) for label in labels]
        axes.plot(allowed, range(len(labels)), "|", color=TARGET, markersize=18, label="allowed")
        axes.set_yticks(range(len(labels)), labels)
        axes.set_xlabel(f"peak GiB of a rank, {billions:g} billion parameters")
        axes.legend()

    return Report(
        "training_memory",
        f"Host memory of {NUM_RANKS} ranks under ZeRO-3, {billions:g} billion parameters",
        rows,
        notes=[f"allowed: {_ALLOWED:g} times a rank's share, its largest layer and 1 GiB for Python, torch and DeepSpeed"],
        draw=draw,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--billions", type=float, default=0.5, help="parameters")
    parser.add_argument("--dtypes", nargs="+", choices=tuple(_BYTES_A_PARAMETER), default=list(_BYTES_A_PARAMETER))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        build_model(model, shape=_shape(options.billions))
        rows = list(measure(Path(folder), model, options.dtypes))
    report(rows, options.billions).publish(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
