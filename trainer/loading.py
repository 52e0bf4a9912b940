"""The model that is trained, as it is loaded on every rank."""

from pathlib import Path

import torch
from transformers import AutoModelForImageTextToText, PreTrainedModel

from schemas.training_config import TrainerConfig
from trainer import packed_attention
from trainer.acceleration import accelerate
from trainer.deepspeed_config import DeepSpeedConfig


def load_policy(folder: Path, deepspeed: DeepSpeedConfig, trainer: TrainerConfig) -> PreTrainedModel:
    """The model in `folder`, all of its weights to be trained."""
    packed_attention.register()
    model: PreTrainedModel = AutoModelForImageTextToText.from_pretrained(
        folder, dtype=getattr(torch, deepspeed.dtype), attn_implementation=packed_attention.PACKED
    )
    accelerate(model)
    if deepspeed.checkpoints_activations:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model
