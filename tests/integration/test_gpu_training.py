"""The GPU benchmark runs as it is, with the tiny model on whatever is at hand."""

from pathlib import Path

import pytest

from benchmarks.gpu_training import Job, measure, notes
from benchmarks.training_samples import build_model

pytestmark = pytest.mark.integration


def test_the_gpu_benchmark_trains_the_tiny_model(tmp_path: Path) -> None:
    build_model(tmp_path / "tiny")
    row = measure(
        Job(
            model=tmp_path / "tiny",
            num_samples=6,
            max_tokens=100,
            width=160,
            height=210,
            steps=2,
            warm_up_steps=1,
            deepspeed="ds_config_cpu_zero1.json",
            peak_tflops=0.1,
        )
    )
    assert row.last_loss < row.first_loss
    assert row.tokens_per_s > row.completion_tokens_per_s > 0
    assert row.mfu is not None
    assert row.mfu == pytest.approx(row.tflops_per_s / 0.1)
    if row.device == "CPU":
        assert "no GPU" in notes(row)[0]
