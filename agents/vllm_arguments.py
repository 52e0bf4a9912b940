"""What one vLLM engine is built from: a policy's settings, and further arguments of vLLM's own by their names there."""

import dataclasses
import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.vllm_adapters import adapter_arguments
from schemas.errors import ConfigurationError
from schemas.ids import PolicyVersion
from schemas.lora_config import LoraConfig
from schemas.policy_config import PolicyConfig

if TYPE_CHECKING:
    from vllm.config import VllmConfig

_CPU_KV_BYTES = (64 << 20, 4 << 30)
"""Smallest and largest key-value cache on CPU."""
_SCREENSHOT_CACHE_GB, _CPU_SCREENSHOT_CACHE_GB = 4.0, 0.125
"""GiB of the host for screenshots that are prepared; the first is vLLM's own choice too."""
_STEP_TOKENS = 8192
"""Of one step on a GPU. An engine that is built as here would otherwise have vLLM's 2,048, and take four times as many steps
for the same prompts."""


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """Everything the engine is built from."""

    folder: Path
    version: PolicyVersion
    policy: PolicyConfig
    cutoff_len: int
    """Tokens of prompt and completion that training takes."""
    max_screenshots: int
    """Screenshots in one prompt."""
    seed: int
    """Of the sampler; two workers of one run must not share it."""
    lora: LoraConfig = LoraConfig()
    """Which adapters later versions are; by default they are whole models."""

    @property
    def max_model_len(self) -> int:
        """Tokens, prompt and completion together, that configuration and model allow."""
        model, most = model_config(self.folder), self.policy.max_model_len
        longest: int = min(most, model.get("text_config", model).get("max_position_embeddings", most))
        return longest


def engine_config(settings: VllmSettings, *, on_cpu: bool) -> "VllmConfig":
    """vLLM's own configuration, checked by vLLM.

    Raises:
        ConfigurationError: `policy_config.vllm_args` names what vLLM does not know, or vLLM refuses the arguments.
    """
    from vllm.engine.arg_utils import EngineArgs
    from vllm.usage.usage_lib import UsageContext

    known = [field.name for field in dataclasses.fields(EngineArgs) if not field.name.startswith("_")]
    for name in settings.policy.vllm_args:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise ConfigurationError(
                f"policy_config.vllm_args.{name} is no argument of this vLLM's engine; did you mean {nearest}?"
            )
    try:
        return EngineArgs(**engine_arguments(settings, on_cpu=on_cpu)).create_engine_config(UsageContext.ENGINE_CONTEXT)
    except (ValueError, TypeError, NotImplementedError) as error:
        given = ", ".join(settings.policy.vllm_args) or "none"
        raise ConfigurationError(
            f"vLLM refuses what it is to be started with (of policy_config.vllm_args: {given}): {error}"
        ) from error


def engine_arguments(settings: VllmSettings, *, on_cpu: bool) -> dict[str, Any]:
    """By the names of vLLM's EngineArgs."""
    policy, model = settings.policy, model_config(settings.folder)
    # vLLM would narrow a float32 model by itself, and its log-probabilities would no longer be the trainer's.
    dtype = "float32" if policy.dtype == "auto" and _dtype(model) == "float32" else policy.dtype
    common = {
        "model": str(settings.folder),
        "max_model_len": settings.max_model_len,
        "max_num_seqs": policy.max_num_seqs,
        "dtype": dtype,
        "seed": settings.seed,
        "logprobs_mode": "processed_logprobs",
        "limit_mm_per_prompt": {"image": settings.max_screenshots, "video": 0},
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
    } | adapter_arguments(settings.lora, on_cpu=on_cpu)
    if not on_cpu:
        of_gpu = {
            "max_num_batched_tokens": step_tokens(policy, settings.max_model_len),
            "mm_processor_cache_gb": screenshot_cache_gb(policy),
        }
        return common | {"gpu_memory_utilization": policy.gpu_memory_utilization} | policy.vllm_args | of_gpu
    return (
        common
        | {
            "enforce_eager": True,
            "skip_mm_profiling": True,
            "mm_processor_cache_gb": _CPU_SCREENSHOT_CACHE_GB,
            "kv_cache_memory_bytes": _cpu_kv_bytes(
                model.get("text_config", model), settings.max_model_len * policy.max_num_seqs
            ),
        }
        | policy.vllm_args
    )


def step_tokens(policy: PolicyConfig, max_model_len: int) -> int:
    """Tokens, of prompts and answers, that one step of an engine on a GPU calculates at most: within what vLLM takes, which is
    a token of each request or more, a whole prompt where none is divided, and no more than all requests have."""
    given: int | None = policy.vllm_args.get("max_num_batched_tokens")
    if given is not None:
        return given
    whole = max_model_len if policy.vllm_args.get("enable_chunked_prefill") is False else 0
    return min(max(_STEP_TOKENS, policy.max_num_seqs, whole), policy.max_num_seqs * max_model_len)


def screenshot_cache_gb(policy: PolicyConfig) -> float:
    """GiB of the host in which an engine on a GPU keeps the screenshots that it has prepared. vLLM's two caches, that of
    prompts and the engine's, hold the same arrays: both are in one process."""
    given: float | None = policy.vllm_args.get("mm_processor_cache_gb")
    return _SCREENSHOT_CACHE_GB if given is None else given


def _cpu_kv_bytes(text: Mapping[str, Any], num_tokens: int) -> int:
    """Enough for `num_tokens` tokens in float32, within bounds."""
    heads = text["num_key_value_heads"]
    head_dim = text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"]
    wanted: int = 2 * 4 * text["num_hidden_layers"] * heads * head_dim * num_tokens
    return min(max(wanted, _CPU_KV_BYTES[0]), _CPU_KV_BYTES[1])


def model_config(folder: Path) -> dict[str, Any]:
    """A model folder's config.json."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return config


def _dtype(model: Mapping[str, Any]) -> str:
    text = model.get("text_config", {})
    return str(model.get("dtype") or model.get("torch_dtype") or text.get("dtype") or text.get("torch_dtype") or "")
