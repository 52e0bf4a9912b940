"""`policy_config.vllm_args`: what is decided elsewhere cannot be set there, and parts are counted."""

import pytest

from ops.config.loading import load_config
from schemas.errors import ConfigurationError


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
