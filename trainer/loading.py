"""The model that is trained, as it is loaded on every rank."""

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
    if trainer.fast_patch_embedding:
        fast_patch_embedding(model)
    if deepspeed.checkpoints_activations:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model
