"""The model that is trained, as it is loaded on every rank."""

from pathlib import Path

import torch
from transformers import AutoModelForImageTextToText, PreTrainedModel

from schemas.training_config import TrainerConfig
from trainer.deepspeed_config import DeepSpeedConfig
from trainer.patch_embedding import fast_patch_embedding


def load_policy(folder: Path, deepspeed: DeepSpeedConfig, trainer: TrainerConfig) -> PreTrainedModel:
    """The model in `folder`, all of its weights to be trained."""
    model: PreTrainedModel = AutoModelForImageTextToText.from_pretrained(folder, dtype=getattr(torch, deepspeed.dtype))
    if trainer.fast_patch_embedding:
        fast_patch_embedding(model)
    if deepspeed.checkpoints_activations:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model
