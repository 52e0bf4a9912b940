"""FLOPs by hand, and the metrics that a version reports."""

import numpy as np
import pytest
import torch
from transformers import Qwen3VLConfig, Qwen3VLMoeConfig

from schemas.ids import EpisodeId
from schemas.messages import RecordRef
from trainer.engine.throughput import ModelCost, peak_flops
from trainer.ports import Effort, StepResult
from trainer.samples import Patches, Sample
from trainer.training_metrics import TrainingMetrics

CONFIG = Qwen3VLConfig(
    text_config={
        "hidden_size": 8,
        "intermediate_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 4,
        "vocab_size": 100,
    },
    vision_config={
        "hidden_size": 6,
        "intermediate_size": 10,
        "depth": 2,
        "num_heads": 1,
        "spatial_merge_size": 2,
        "in_channels": 3,
        "temporal_patch_size": 2,
        "patch_size": 4,
        "out_hidden_size": 8,
        "deepstack_visual_indexes": [0],
    },
)


def test_flops_are_those_of_the_matrix_products() -> None:
    sample = Sample(
        ref=RecordRef(EpisodeId("e"), attempt=1, kind="act", step=0),
        tokens=np.zeros(10, dtype=np.int32),
        num_prompt=7,
        positions=np.zeros((3, 10), dtype=np.int32),
        logprobs=np.zeros(0, dtype=np.float32),
        temperature=1.0,
        screenshots=(Patches(np.zeros((8, 48), dtype=np.uint8), (1, 4, 2)),),
        versions=np.zeros(3, dtype=np.int32),
    )
    text_layer = 8 * 8 + 2 * 8 * 4 + 8 * 8 + 3 * 8 * 16
    text = 2 * 3 * text_layer * 10 + 3 * 2 * 10 * 10 * 8
    head = 2 * 8 * 100 * 3
    block = 6 * 18 + 6 * 6 + 2 * 6 * 10
    merger = 24 * 24 + 24 * 8
    vision = 2 * 96 * 6 * 8 + 2 * 2 * block * 8 + 2 * 4 * 8 * 8 * 6 + 2 * 2 * merger * 2
    work = ModelCost.of(CONFIG).work([sample])
    assert (work.tokens, work.completion_tokens) == (10, 3)
    assert work.flops == 3 * (text + head + vision)


def test_of_experts_those_count_that_a_token_is_sent_to() -> None:
    def cost(num_experts: int, num_used: int) -> float:
        experts = {"num_experts": num_experts, "num_experts_per_tok": num_used, "moe_intermediate_size": 16}
        text = CONFIG.text_config.to_dict() | experts | {"model_type": "qwen3_vl_moe_text"}
        vision = CONFIG.vision_config.to_dict() | {"model_type": "qwen3_vl_moe_vision"}
        return ModelCost.of(Qwen3VLMoeConfig(text_config=text, vision_config=vision)).a_token

    expert, router = 2 * 3 * (3 * 8 * 16), 2 * 3 * 8
    assert cost(8, 2) - cost(4, 2) == 4 * router
    assert cost(8, 5) - cost(8, 2) == pytest.approx(3 * expert)


def test_the_peak_of_a_cpu_is_what_the_configuration_says() -> None:
    assert peak_flops(torch.device("cpu"), 0.0) == 0
    assert peak_flops(torch.device("cpu"), 1.5) == 1.5e12


def test_a_version_reports_its_speed() -> None:
    def result(seconds: float, peak: float) -> StepResult:
        effort = Effort(seconds, tokens=100, completion_tokens=20, flops=3e12, peak_flops_per_s=peak)
        return StepResult(1.0, 1.0, 1e-3, 20, effort=effort)

    metrics = TrainingMetrics()
    metrics.add(result(1.0, 4e12), 5)
    metrics.add(result(3.0, 4e12), 5)
    shown = metrics.means()
    assert {key: shown[key] for key in ("tokens_per_s", "completion_tokens_per_s", "samples_per_s", "step_s")} == {
        "tokens_per_s": 50.0,
        "completion_tokens_per_s": 10.0,
        "samples_per_s": 2.5,
        "step_s": 2.0,
    }
    assert shown["mfu"] == pytest.approx(1.5e12 / 4e12)
    unknown = TrainingMetrics()
    unknown.add(result(1.0, 0.0), 5)
    assert "mfu" not in unknown.means()
