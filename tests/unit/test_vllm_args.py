"""`policy_config.vllm_args`: what is decided elsewhere cannot be set there, parts are counted, and steps have a size."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.vllm_arguments import VllmSettings, engine_arguments
from ops.config.loading import load_config
from ops.gpu_check.random_model import describe_model
from ops.launch.node_file import Share
from ops.planning.gpus import gpu_named
from ops.planning.model_size import model_size
from ops.planning.plan import Machine, planned
from schemas.errors import ConfigurationError
from schemas.ids import PolicyVersion
from schemas.messages import Role
from schemas.policy_config import PolicyConfig


def test_arguments_are_written_as_any_key() -> None:
    config = load_config(
        "update_online",
        [
            "policy_config.vllm_args={tensor_parallel_size: 2, compilation_config: {cudagraph_mode: NONE}}",
            "policy_config.vllm_args.pipeline_parallel_size=3",
        ],
    )
    assert config.policy_config.vllm_args == {
        "tensor_parallel_size": 2,
        "compilation_config": {"cudagraph_mode": "NONE"},
        "pipeline_parallel_size": 3,
    }
    assert config.policy_config.num_parts == 6
    assert load_config("update_online", []).policy_config.num_parts == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("seed: 3", "vllm_args.seed cannot be set: every worker samples by its own"),
        ("max_model_len: 100", "vllm_args.max_model_len cannot be set: write policy_config.max_model_len"),
        ("data_parallel_size: 2", "vllm_args.data_parallel_size cannot be set: start more policy workers"),
        ("speculative_config: {method: eagle3, model: some/head}", r"drafts by a model \(eagle3\), which would stay as it is"),
        ("speculative_config: {model: some/model, num_speculative_tokens: 3}", r"a model \(some/model\), .* ngram"),
        ("speculative_config: {method: mtp, num_speculative_tokens: 1}", r"drafts by a model \(mtp\)"),
        ("spec_model: some/model", r"drafts by a model \(some/model\)"),
        ("tensor_parallel_size: 0", "vllm_args.tensor_parallel_size is 0: write a whole number above 0"),
        ("tensor_parallel_size: two", "vllm_args.tensor_parallel_size is 'two': write a whole number above 0"),
        ("mm_processor_cache_gb: -1", "vllm_args.mm_processor_cache_gb is -1: write a number of GiB, or 0 for no cache"),
        ("max_num_batched_tokens: 8k", "vllm_args.max_num_batched_tokens is '8k': write a whole number above 0"),
    ],
)
def test_what_cannot_be_set_says_what_to_write(given: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        load_config("update_online", [f"policy_config.vllm_args={{{given}}}"])


@pytest.mark.parametrize(
    "given",
    [
        "speculative_config: {method: ngram, num_speculative_tokens: 3}",
        "speculative_config: {model: '[ngram]', num_speculative_tokens: 3}",
        "speculative_config: {method: suffix}",
        "speculative_config: null",
        "spec_method: ngram_gpu",
    ],
)
def test_tokens_may_be_drafted_without_a_model(given: str) -> None:
    assert load_config("update_online", [f"policy_config.vllm_args={{{given}}}"]).policy_config.vllm_args


def engine_of(model: Path, policy: PolicyConfig) -> dict[str, Any]:
    """What an engine on a GPU is built with."""
    settings = VllmSettings(folder=model, version=PolicyVersion(0), policy=policy, cutoff_len=1024, max_screenshots=1, seed=1)
    return engine_arguments(settings, on_cpu=False)


@pytest.mark.parametrize(
    ("given", "num_tokens"),
    [
        ({}, 8192),
        ({"vllm_args": {"max_num_batched_tokens": 4096}}, 4096),
        ({"vllm_args": {"max_num_batched_tokens": None}}, 8192),
        ({"max_num_seqs": 10_000}, 10_000),
        ({"max_num_seqs": 2, "max_model_len": 1024, "max_new_tokens": 512}, 2048),
        ({"max_model_len": 32768, "vllm_args": {"enable_chunked_prefill": False}}, 32768),
    ],
)
def test_a_step_on_a_gpu_has_as_many_tokens_as_a_plan_says(tmp_path: Path, given: dict[str, Any], num_tokens: int) -> None:
    model, policy = describe_model(tmp_path, "2B"), PolicyConfig(**given)
    built = engine_of(model, policy)
    assert (built["max_num_batched_tokens"], built["mm_processor_cache_gb"]) == (num_tokens, 4)
    config = replace(load_config("update_online", []), policy_config=policy)
    made = planned(config, model_size(model), Machine(gpu=gpu_named("H100")), [Share(role=Role.POLICY)])
    assert made.serving is not None
    assert made.serving.tokens_a_step == num_tokens
