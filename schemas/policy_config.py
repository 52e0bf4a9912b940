"""Configures the engine that answers observations, and how it samples. WebGym's keys and defaults."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from schemas.ranges import LEAST_TEMPERATURE
from schemas.requirement import require

_PARTS = ("tensor_parallel_size", "pipeline_parallel_size")
_STEP, _CACHE = "max_num_batched_tokens", "mm_processor_cache_gb"
_NO_ENGINE_ARGUMENTS: Mapping[str, str] = {
    "model": "write policy_config.base_model",
    "revision": "write it behind the name in policy_config.base_model, as in NAME@REVISION",
    "tokenizer": "it is the model's own",
    "dtype": "write policy_config.dtype",
    "max_model_len": "write policy_config.max_model_len",
    "max_num_seqs": "write policy_config.max_num_seqs",
    "gpu_memory_utilization": "write policy_config.gpu_memory_utilization",
    "limit_mm_per_prompt": "write context_config.num_rounds",
    "hf_overrides": "write it into the model's config.json, where the trainer reads it too",
    "mm_processor_kwargs": "write it into the model's preprocessor_config.json, where the trainer reads it too",
    "enable_lora": "write trainer_config.lora.rank",
    "max_lora_rank": "write trainer_config.lora.rank",
    "max_loras": "the adapters of two versions are held",
    "max_cpu_loras": "the adapters of two versions are held",
    "seed": "every worker samples by its own, which feeder_config.seed decides",
    "logprobs_mode": "training needs the log-probabilities of the distribution that was sampled from",
    "disable_log_stats": "the worker's metrics are on the bus",
    "data_parallel_size": "start more policy workers, each has the whole model",
    "nnodes": "a policy worker is on one machine",
    "distributed_executor_backend": "a policy worker starts its own processes",
}
"""What is set for a reason, and what to do instead."""
_DRAFTERS = ("ngram", "[ngram]", "ngram_gpu", "suffix", "custom_class")
"""vLLM's ways to draft tokens ahead that need no further model."""


@dataclass(frozen=True, kw_only=True)
class PolicyConfig:
    engine: Literal["vllm", "openai", "oracle", "simulated"] = "vllm"
    """`openai`: any OpenAI-compatible endpoint; `oracle`: the page's own scripted oracle, for demonstrations; `simulated`: no
    model at all, see `simulation_config`."""
    base_model: str = ""
    """The model that version 0 stands for: a folder, or a name of the Hugging Face Hub, as in `Qwen/Qwen3-VL-2B-Instruct` or
    `Qwen/Qwen3-VL-2B-Instruct@main`; of `openai`, the endpoint's name for it."""
    checkpoint_path: str = ""
    """The model that version 0 stands for instead of `base_model`, for trainer and policies alike: a checkpoint or an exported
    model of another run, or any other that `base_model` could name."""
    max_new_tokens: int = 3072
    """Tokens of one answer at most."""
    temperature: float = 1.0
    """Of sampling; 0: always the likeliest token."""
    eval_temperature: float | None = None
    """Of sampling in evaluation episodes; null: `temperature`."""
    top_p: float = 0.99
    """Only the likeliest tokens that together have this probability are sampled; 1: all, which a policy
    gradient begins with."""
    top_k: int = 2
    """Only so many of the likeliest tokens are sampled; -1: all, which a policy gradient begins with."""
    min_p: float = 0.0
    """Only tokens with at least this share of the likeliest one's probability are sampled; 0: all."""
    max_model_len: int = 16384
    """Tokens, prompt and completion together. The oldest rounds are left out of a prompt until `max_new_tokens` fit behind it,
    within this and `algorithm_config.cutoff_len`."""
    max_num_seqs: int = 128
    """Requests that the engine works on at once; also how many steps one worker holds."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Number format of the engine's weights; `auto`: the model's own."""
    gpu_memory_utilization: float = 0.9
    """Share of the GPU's memory that the engine takes."""
    vllm_args: dict[str, Any] = field(default_factory=dict)
    """Further arguments of vLLM's engine (its EngineArgs), by their names there, as in `{tensor_parallel_size: 2}` for a model
    on two GPUs. On a GPU `max_num_batched_tokens` is 8192 unless it stands here."""
    base_url: str = ""
    """Of the OpenAI-compatible endpoint."""
    api_key_env_var: str = "OPENAI_API_KEY"
    """Environment variable that holds the key for `base_url`."""
    vllm_timeout: float = 240.0
    """Seconds one answer may take."""
    history_mb: int = 1024
    """Memory (units of 2**20 bytes) for the episodes that a worker answered last: the screenshots of their last rounds, the
    words of all. One that is let go of is read again from its chain when it goes on."""

    def __post_init__(self) -> None:
        require(self.max_new_tokens > 0, f"policy_config.max_new_tokens is {self.max_new_tokens}: write a number above 0")
        require(self.history_mb > 0, f"policy_config.history_mb is {self.history_mb}: write a number above 0")
        least = f"write 0, or {LEAST_TEMPERATURE} or more"
        require(_samples(self.temperature), f"policy_config.temperature is {self.temperature}: {least}")
        require(
            self.eval_temperature is None or _samples(self.eval_temperature),
            f"policy_config.eval_temperature is {self.eval_temperature}: {least}, or null for that of training",
        )
        for name in ("top_p", "gpu_memory_utilization"):
            share = getattr(self, name)
            require(0 < share <= 1, f"policy_config.{name} is {share}: write a number above 0 and at most 1")
        require(0 <= self.min_p <= 1, f"policy_config.min_p is {self.min_p}: write 0 to 1")
        require(self.top_k >= -1, f"policy_config.top_k is {self.top_k}: write a number of tokens, or -1 for all")
        for name in ("max_num_seqs", "max_model_len", "vllm_timeout"):
            value = getattr(self, name)
            require(value > 0, f"policy_config.{name} is {value}: write a number above 0")
        for name, instead in _NO_ENGINE_ARGUMENTS.items():
            require(name not in self.vllm_args, f"policy_config.vllm_args.{name} cannot be set: {instead}")
        drafter = _drafter(self.vllm_args)
        require(
            drafter in _DRAFTERS,
            f"policy_config.vllm_args.speculative_config drafts by a model ({drafter}), which would stay as it is while the "
            "policy is trained: write a method without one, as in {method: ngram, num_speculative_tokens: 3}, or leave it out",
        )
        counts = {name: self.vllm_args[name] for name in _PARTS if name in self.vllm_args}
        if (step := self.vllm_args.get(_STEP)) is not None:
            counts[_STEP] = step
        for name, size in counts.items():
            require(
                isinstance(size, int) and not isinstance(size, bool) and size > 0,
                f"policy_config.vllm_args.{name} is {size!r}: write a whole number above 0",
            )
        cache = self.vllm_args.get(_CACHE)
        require(
            cache is None or (isinstance(cache, int | float) and not isinstance(cache, bool) and cache >= 0),
            f"policy_config.vllm_args.{_CACHE} is {cache!r}: write a number of GiB, or 0 for no cache",
        )

    @property
    def starting_model(self) -> str:
        """What version 0 stands for."""
        return self.checkpoint_path or self.base_model

    @property
    def num_parts(self) -> int:
        """Of the model in one worker, each on a GPU of its own."""
        return math.prod(self.vllm_args.get(name, 1) for name in _PARTS)

    def temperature_of(self, *, evaluation: bool) -> float:
        """That of the episodes of one split."""
        return self.eval_temperature if evaluation and self.eval_temperature is not None else self.temperature


def _samples(temperature: float) -> bool:
    return temperature == 0 or temperature >= LEAST_TEMPERATURE


def _drafter(vllm_args: Mapping[str, Any]) -> str:
    """How tokens are drafted ahead, as far as that is asked for: a method, or a model."""
    given = vllm_args.get("speculative_config")
    asked = given if isinstance(given, Mapping) else {}
    method, model = (vllm_args.get(f"spec_{name}", asked.get(name)) for name in ("method", "model"))
    return str(method or model or _DRAFTERS[0])
