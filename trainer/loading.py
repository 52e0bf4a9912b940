"""Models as they are loaded for training, on every rank."""

from pathlib import Path

import torch
from transformers import AutoModelForImageTextToText, PreTrainedModel

from schemas.training_config import TrainerConfig
from trainer.adapter_folder import base_of, holds_adapters, require_adapters
from trainer.adapters import adapt, load_adapters
from trainer.deepspeed_config import DeepSpeedConfig
from trainer.patch_embedding import fast_patch_embedding


def load_policy(folder: Path, deepspeed: DeepSpeedConfig, trainer: TrainerConfig, *, resume: bool) -> PreTrainedModel:
    """The model in `folder`: all of its weights are to be trained, or adapters on it, begun anew or continued.

    Raises:
        ConfigurationError: `folder` was trained with other adapters, or with none.
        CheckpointCorrupt: the adapters in `folder` cannot be read.
    """
    base = base_of(folder)
    require_adapters(folder, trainer.lora, resume=resume)
    model: PreTrainedModel = AutoModelForImageTextToText.from_pretrained(base, dtype=getattr(torch, deepspeed.dtype))
    if trainer.lora.active:
        adapt(model, trainer.lora, base=base, seed=trainer.seed)
        if holds_adapters(folder):
            load_adapters(model, folder)
    return _prepared(model, deepspeed, trainer)


def load_model(folder: Path, deepspeed: DeepSpeedConfig, trainer: TrainerConfig) -> PreTrainedModel:
    """The whole model in `folder`, without adapters: what a critic begins from, and a reference is."""
    model: PreTrainedModel = AutoModelForImageTextToText.from_pretrained(folder, dtype=getattr(torch, deepspeed.dtype))
    return _prepared(model, deepspeed, trainer)


def _prepared(model: PreTrainedModel, deepspeed: DeepSpeedConfig, trainer: TrainerConfig) -> PreTrainedModel:
    if trainer.fast_patch_embedding:
        fast_patch_embedding(model)
    if deepspeed.checkpoints_activations:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model
