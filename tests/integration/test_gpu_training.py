"""The GPU benchmark runs as it is, with the tiny model on whatever is at hand."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.deadlines import HANGS_S

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]


def test_the_gpu_benchmark_trains_the_tiny_model(tmp_path: Path) -> None:
    sizes = ("--samples", "6", "--max-tokens", "100", "--width", "160", "--height", "210", "--steps", "2")
    subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu_training", *sizes, "--peak-tflops", "0.1", "--out", str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True, timeout=HANGS_S,
    )  # fmt: skip
    figures = json.loads((tmp_path / "gpu_training.json").read_text())
    (row,) = figures["rows"]
    assert row["last_loss"] < row["first_loss"]
    assert row["tokens_per_s"] > row["completion_tokens_per_s"] > 0
    assert row["mfu"] == pytest.approx(row["tflops_per_s"] / 0.1)
    if not torch.cuda.is_available():
        assert "no GPU" in figures["notes"][0]
