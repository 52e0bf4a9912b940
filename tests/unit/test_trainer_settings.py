"""DeepSpeed files."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agents.vllm_adapters import adapter_arguments
from ops.config.loading import load_config
from ops.config.schema import build_config
from ops.roles.deepspeed_trainer import engine_settings
from schemas.algorithm_config import AlgorithmConfig
from schemas.errors import ConfigurationError
from schemas.lora_config import LoraConfig
from tests.support.training.trainer_world import CONFIGS
from trainer.engine.deepspeed_config import read_deepspeed_config
from trainer.model.adapter_folder import target_pattern

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
        (
            {"zero_optimization": {"stage": 1}, "fp16": {"enabled": True}, "bf16": {"enabled": True}},
            "enable bf16 or fp16, not both",
        ),
        ({"zero_optimization": {"stage": 1}, "gradient_clipping": 1}, "leave out 'gradient_clipping'"),
        ({"zero_optimization": {"stage": 1}, "scheduler": {"type": "WarmupLR"}}, "leave out 'scheduler'"),
        ([{"zero_optimization": {"stage": 1}}], "holds no object"),
        ({"zero_optimization": 1}, r'as in {"zero_optimization": {"stage": 1}}'),
        ({"zero_optimization": {"stage": 1}, "bf16": True}, r'as in {"bf16": {"enabled": true}}'),
        ({"zero_optimization": {"stage": 1}, "bf16": {"enabled": "false"}}, "true or false for bf16.enabled"),
        ({"zero_optimization": {"stage": 1}, "bf16": {"enabled": "auto"}}, "a value for bf16.enabled, or leave it out"),
        ({"zero_optimization": {"stage": 1, "reduce_bucket_size": "auto"}}, "value for zero_optimization.reduce_bucket_size"),
        (
            {"zero_optimization": {"stage": 1}, "bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}},
            "grad_accum_dtype fp32 with bf16 under ZeRO-1 .* write 2 for zero_optimization.stage",
        ),
    ],
)
def test_files_that_cannot_work_are_refused(tmp_path: Path, settings: object, says: str) -> None:
    file = tmp_path / "ds.json"
    file.write_text(json.dumps(settings))
    with pytest.raises(ConfigurationError, match=says):
        read_deepspeed_config(file)


@pytest.mark.parametrize(
    "settings",
    [
        {"zero_optimization": {"stage": 2}, "bf16": {"enabled": True}},
        {"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": True}},
        {"zero_optimization": {"stage": 1}},
    ],
)
def test_gradients_are_added_up_in_float32_where_zero_keeps_its_optimizer(tmp_path: Path, settings: dict[str, Any]) -> None:
    file = tmp_path / "ds.json"
    file.write_text(json.dumps({**settings, "data_types": {"grad_accum_dtype": "fp32"}}))
    assert read_deepspeed_config(file).stage == settings["zero_optimization"]["stage"]


def test_fp16_is_for_policies_too(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text(json.dumps({"zero_optimization": {"stage": 1}, "fp16": {"enabled": True}}))
    named = f"algorithm_config.deepspeed_config_filename={file}"
    with pytest.raises(ConfigurationError, match=r"write policy_config\.dtype: float16"):
        engine_settings(load_config("update_online", [named]))
    found = engine_settings(load_config("update_online", [named, "policy_config.dtype=float16"])).deepspeed
    assert found.dtype == "float16"
    assert found.completed(AlgorithmConfig())["fp16"] == {"enabled": True}


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="deepspeed_config_filename"):
        read_deepspeed_config(tmp_path / "absent.json")
    for data in (b"{", b'{"zero_optimization": "\xff"}', b"[" * 100_000):
        (tmp_path / "broken.json").write_bytes(data)
        with pytest.raises(ConfigurationError, match="not JSON"):
            read_deepspeed_config(tmp_path / "broken.json")


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"rank": -1}, "rank is -1: write 1 to 512"),
        ({"rank": 513}, "rank is 513"),
        ({"alpha": 0}, "alpha is 0: write 1 or more"),
        ({"dropout": 1.0}, "dropout is 1.0: write 0, or a number below 1"),
        ({"targets": ()}, "targets is empty"),
        ({"targets": ("q_proj", "lm_head")}, "targets names lm_head: write some of q_proj"),
    ],
)
def test_adapters_that_cannot_be_are_refused(chosen: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        LoraConfig(**chosen)


def test_adapters_by_configuration() -> None:
    plain = build_config({}).trainer_config.lora
    assert (plain.active, plain.adapts_screenshots) == (False, False)
    given = {"rank": 16, "targets": ["q_proj", "qkv"]}
    chosen = build_config({"trainer_config": {"lora": given}}).trainer_config.lora
    assert (chosen.active, chosen.adapts_screenshots, chosen.targets) == (True, True, ("q_proj", "qkv"))
    assert not LoraConfig(rank=16).adapts_screenshots
    assert adapter_arguments(plain, on_cpu=False) == {}


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        (
            ("q_proj", "down_proj"),
            ["model.language_model.layers.0.mlp.down_proj", "model.language_model.layers.0.self_attn.q_proj"],
        ),
        (("proj",), ["model.visual.blocks.1.attn.proj"]),
        (("linear_fc1",), ["model.visual.blocks.1.mlp.linear_fc1", "model.visual.merger.linear_fc1"]),
    ],
)
def test_targets_are_whole_names(targets: tuple[str, ...], expected: list[str]) -> None:
    layers = [
        "lm_head",
        "model.language_model.layers.0.mlp.down_proj",
        "model.language_model.layers.0.self_attn.q_proj",
        "model.visual.blocks.1.attn.proj",
        "model.visual.blocks.1.mlp.linear_fc1",
        "model.visual.merger.linear_fc1",
        "model.visual.patch_embed.proj",
    ]
    pattern = target_pattern(LoraConfig(rank=1, targets=targets))
    assert [layer for layer in layers if re.fullmatch(pattern, layer)] == expected
