"""The check of a machine's GPUs runs whole, on whatever is at hand: a real vLLM, a real bus and a real DeepSpeed."""

import json
from pathlib import Path

import pytest
import torch

from ops.cli import main
from ops.gpu_check.results import Serving, Trained, read

pytestmark = pytest.mark.integration


def test_a_tiny_model_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    only = ["--only", "serving", "--only", "training"]
    assert main(["gpu-check", "--random", "tiny", "--out", str(tmp_path), *only]) == 0, capsys.readouterr().out
    serving, trained = read(tmp_path, "serving-1", Serving), read(tmp_path, "training", Trained)
    assert serving is not None
    assert trained is not None
    assert [each.num_answers for each in serving.throughput] == [1, 16, 64]
    assert all(each.completion_tokens >= each.num_answers for each in serving.throughput)
    assert [way.over for way in serving.refreshes] == ["path", "bus"]
    assert trained.agreement is not None
    assert trained.agreement.k3 < 1e-6, "both are in float32"
    assert [(run.layout, run.samples_at_once) for run in trained.runs] == [
        ("packed", 16),
        ("packed, activations kept", 8),
        ("one by one", 1),
    ]
    assert trained.runs[0].tokens_a_step == trained.runs[1].tokens_a_step > 0
    told = json.loads((tmp_path / "gpu_check.json").read_text())
    assert {line["part"] for line in told["figures"]} >= {"serving", "training, packed", "policy and float32 trainer"}
    assert told["failed"] == []
    if not torch.cuda.is_available():
        assert serving.memory_gib is None
    said = capsys.readouterr().out
    assert "tokens far off" in said
    assert (tmp_path / "gpu_check.png").stat().st_size > 0
