"""DeepSpeed files."""

import json
from pathlib import Path

import pytest

from schemas.errors import ConfigurationError
from schemas.training_config import AlgorithmConfig
from tests.trainer_world import CONFIGS
from trainer.deepspeed_config import read_deepspeed_config

NAMES = sorted(f"ds_config_{device}_zero{stage}.json" for device in ("cpu", "h100", "b200") for stage in (1, 2, 3))


def test_every_shipped_file_is_read_and_completed() -> None:
    assert sorted(file.name for file in CONFIGS.glob("*.json")) == NAMES
    for name in NAMES:
        config = read_deepspeed_config(CONFIGS / name)
        assert name.endswith(f"zero{config.stage}.json")
        assert config.dtype == ("float32" if "cpu" in name else "bfloat16")
        completed = config.completed(AlgorithmConfig(per_device_train_batch_size=3, max_grad_norm=0.5))
        assert completed["train_micro_batch_size_per_gpu"] == 3
        assert completed["gradient_clipping"] == 0.5
        assert '"auto"' not in json.dumps(completed)


def test_only_the_h100_stage_3_file_offloads() -> None:
    offloading = [name for name in NAMES if "offload_param" in (CONFIGS / name).read_text()]
    assert offloading == ["ds_config_h100_zero3.json"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"zero_optimization": {"stage": 0}}, "write 1, 2 or 3"),
        ({}, "write 1, 2 or 3"),
        ({"zero_optimization": {"stage": 1}, "fp16": {"enabled": True}}, "enable bf16"),
        ({"zero_optimization": {"stage": 1}, "gradient_clipping": 1}, "leave out 'gradient_clipping'"),
    ],
)
def test_files_that_cannot_work_are_refused(tmp_path: Path, settings: dict[str, object], says: str) -> None:
    file = tmp_path / "ds.json"
    file.write_text(json.dumps(settings))
    with pytest.raises(ConfigurationError, match=says):
        read_deepspeed_config(file)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="deepspeed_config_filename"):
        read_deepspeed_config(tmp_path / "absent.json")
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(ConfigurationError, match="not JSON"):
        read_deepspeed_config(tmp_path / "broken.json")
