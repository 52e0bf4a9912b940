"""DeepSpeed's own configuration files, completed from the algorithm's settings: batch sizes stand in one place."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.algorithm_config import AlgorithmConfig
from schemas.errors import ConfigurationError

_OURS = (
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "optimizer",
    "scheduler",
)
_PRECISIONS = {"bf16": "bfloat16", "fp16": "float16"}
_ZERO = "zero_optimization"
_AUTO = "auto"
_FLOAT32 = ("fp32", "float32", "float", "torch.float32")
"""As DeepSpeed calls it."""
_UNTIMED: dict[str, Any] = {"timers": {"throughput": {"enabled": False}}}
"""DeepSpeed's own measuring waits for the GPU before every forward pass and behind every step."""
_EXAMPLES = {_ZERO: '"stage": 1', "bf16": '"enabled": true', "fp16": '"enabled": true'}


@dataclass(frozen=True)
class DeepSpeedConfig:
    """One file, checked."""

    name: str
    settings: dict[str, Any]

    @property
    def stage(self) -> int:
        return int(self.settings[_ZERO]["stage"])

    @property
    def dtype(self) -> str:
        enabled = (dtype for key, dtype in _PRECISIONS.items() if self.settings.get(key, {}).get("enabled", False))
        return next(enabled, "float32")

    @property
    def checkpoints_activations(self) -> bool:
        return "activation_checkpointing" in self.settings

    def completed(self, algorithm: AlgorithmConfig) -> dict[str, Any]:
        """What DeepSpeed gets. Accumulation is steered by the engine, so that a step may hold any number of micro-batches."""
        return {
            **_UNTIMED,
            **self.settings,
            "train_micro_batch_size_per_gpu": algorithm.per_device_train_batch_size,
            "gradient_accumulation_steps": 1,
            "gradient_clipping": algorithm.max_grad_norm,
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
            "steps_per_print": 2**31,
        }

    def frozen(self) -> dict[str, Any]:
        """What DeepSpeed gets for a model that is sharded and never trained."""
        kept = {key: value for key, value in self.settings[_ZERO].items() if key != "offload_optimizer"}
        return {
            **_UNTIMED,
            **self.settings,
            _ZERO: kept,
            "train_micro_batch_size_per_gpu": 1,
            "gradient_accumulation_steps": 1,
            "steps_per_print": 2**31,
        }


def read_deepspeed_config(file: Path) -> DeepSpeedConfig:
    """Reads one of `ops/config/deepspeed/*.json` or a file of the user's own.

    Raises:
        ConfigurationError: no such file, not JSON, no ZeRO stage 1 to 3, two precisions, a key that the algorithm's settings
            own, a value that is left to another program, or one that makes DeepSpeed take an optimizer without ZeRO's state.
    """
    settings = _read(file)
    for key in _OURS:
        if key in settings:
            raise ConfigurationError(f"{file}: leave out {key!r}; it is taken from algorithm_config")
    for key in (_ZERO, *_PRECISIONS):
        if not isinstance(settings.get(key, {}), dict):
            raise ConfigurationError(f"{file}: write an object for {key}, as in {{{_example(key)}}}")
    if (left_open := next(_left_open(settings), None)) is not None:
        raise ConfigurationError(
            f'{file}: write a value for {left_open}, or leave it out; "{_AUTO}" is filled in by Hugging Face\'s Trainer alone'
        )
    for key in _PRECISIONS:
        if not isinstance(settings.get(key, {}).get("enabled", False), bool):
            raise ConfigurationError(f"{file}: write true or false for {key}.enabled")
    if settings.get(_ZERO, {}).get("stage") not in (1, 2, 3):
        raise ConfigurationError(f"{file}: write 1, 2 or 3 for zero_optimization.stage")
    if all(settings.get(key, {}).get("enabled", False) for key in _PRECISIONS):
        raise ConfigurationError(f"{file}: enable bf16 or fp16, not both")
    if _leaves_zero(settings):
        raise ConfigurationError(
            f"{file}: data_types.grad_accum_dtype fp32 with bf16 under ZeRO-1 makes DeepSpeed take another optimizer, which "
            "is of no use here: write 2 for zero_optimization.stage, where gradients are added up in fp32 too, or leave it out"
        )
    return DeepSpeedConfig(file.name, settings)


def _leaves_zero(settings: Mapping[str, Any]) -> bool:
    """Whether DeepSpeed 0.19 would take its BF16_Optimizer."""
    zero, types = settings[_ZERO], settings.get("data_types")
    in_float32 = isinstance(types, dict) and types.get("grad_accum_dtype") in _FLOAT32
    offload = zero.get("offload_optimizer")
    offloaded = isinstance(offload, dict) and offload.get("device") == "cpu"
    return in_float32 and zero["stage"] == 1 and settings.get("bf16", {}).get("enabled", False) and not offloaded


def _read(file: Path) -> dict[str, Any]:
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be read: set algorithm_config.deepspeed_config_filename to ds_config_cpu_zero1.json, "
            "ds_config_h100_zero1.json, ds_config_b200_zero1.json or a file of your own"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{file} is not JSON: {error}") from error
    if not isinstance(settings, dict):
        raise ConfigurationError(f"{file} holds no object: write {{{_example(_ZERO)}}} and what else DeepSpeed knows")
    return settings


def _example(key: str) -> str:
    return f'"{key}": {{{_EXAMPLES[key]}}}'


def _left_open(settings: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """Full keys whose value is "auto"."""
    for key, value in settings.items():
        if value == _AUTO:
            yield f"{prefix}{key}"
        elif isinstance(value, dict):
            yield from _left_open(value, f"{prefix}{key}.")
