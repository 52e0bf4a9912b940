"""Models as they are loaded for training, on every rank.

Invariants: layers are compiled on all ranks or on none; under ZeRO-3 no rank ever has more of a model in memory than its share
and a layer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForImageTextToText, PreTrainedModel
from transformers.integrations.deepspeed import set_hf_deepspeed_config, unset_hf_deepspeed_config

from schemas.trainer_config import TrainerConfig
from trainer.engine.deepspeed_config import DeepSpeedConfig
from trainer.engine.deepspeed_module import import_deepspeed
from trainer.fast_layers.acceleration import accelerate
from trainer.fast_layers.compiled_layers import all_compile, compile_layers
from trainer.model.adapter_folder import base_of, holds_adapters, require_adapters
from trainer.model.adapters import adapt, load_adapters
from trainer.model.frozen import freeze
from trainer.model.packed_attention import PACKED, register
from trainer.model.stored_weights import keep_published_layout


def load_policy(folder: Path, deepspeed: DeepSpeedConfig, trainer: TrainerConfig, *, resume: bool) -> PreTrainedModel:
    """The model in `folder`: all of its weights are to be trained but those that are frozen, or adapters on it, begun anew or
    continued.

    Raises:
        ConfigurationError: `folder` was trained with other adapters, or with none; or it has no part that is to be frozen.
        CheckpointCorrupt: the adapters in `folder` cannot be read.
    """
    base = base_of(folder)
    require_adapters(folder, trainer.lora, resume=resume)
    model = _loaded(base, deepspeed)
    if trainer.lora.active:
        adapt(model, trainer.lora, base=base, seed=trainer.seed)
        if holds_adapters(folder):
            load_adapters(model, folder)
    freeze(model, trainer.freeze, folder=base)
    return _prepared(model, deepspeed)


def load_model(folder: Path, deepspeed: DeepSpeedConfig) -> PreTrainedModel:
    """The whole model in `folder`, without adapters: what a critic begins from, and a reference is."""
    return _prepared(_loaded(folder, deepspeed), deepspeed)


def _loaded(folder: Path, deepspeed: DeepSpeedConfig) -> PreTrainedModel:
    register()
    with _divided(deepspeed):
        model: PreTrainedModel = AutoModelForImageTextToText.from_pretrained(
            folder, dtype=getattr(torch, deepspeed.dtype), attn_implementation=PACKED
        )
    keep_published_layout(model)
    return model


@contextmanager
def _divided(deepspeed: DeepSpeedConfig) -> Iterator[None]:
    """Within it models are divided among the ranks as they are read, where ZeRO-3 divides them."""
    if deepspeed.stage != 3:
        yield
        return
    import_deepspeed()
    division = _Division(deepspeed.frozen())  # transformers keeps no reference of its own
    set_hf_deepspeed_config(division)
    try:
        yield
    finally:
        unset_hf_deepspeed_config()


@dataclass(eq=False)
class _Division:
    """What transformers asks before it makes a model."""

    config: dict[str, Any]

    def is_zero3(self) -> bool:
        return True


def _prepared(model: PreTrainedModel, deepspeed: DeepSpeedConfig) -> PreTrainedModel:
    accelerate(model)
    if deepspeed.stage != 3 and all_compile():  # ZeRO-3 fetches parameters within the layers
        compile_layers(model)
    if deepspeed.checkpoints_activations:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model
