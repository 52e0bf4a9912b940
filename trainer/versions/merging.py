"""Adapters and their base made into one ordinary model, that anything loads."""

import os
import shutil
from pathlib import Path

import safetensors
import torch
from transformers import AutoModelForImageTextToText

from schemas.errors import CheckpointCorrupt
from trainer.model.adapter_folder import base_of
from trainer.model.stored_weights import keep_published_layout, stored_layers
from trainer.model.tensor_files import write_weights
from trainer.versions.checkpoints import model_files


def merge(folder: Path, into: Path) -> None:
    """Writes the whole model that a checkpoint's adapters stand for, in its base's precision, as a model folder.

    `into`: where nothing is yet; it gets its name when everything is in it.

    Raises:
        CheckpointCorrupt: the adapters cannot be read, or their base is not there.
    """
    import peft

    base = base_of(folder)
    # Added in float32, so that rounding happens once.
    model = AutoModelForImageTextToText.from_pretrained(base, dtype=torch.float32)
    keep_published_layout(model)
    precision = _precision(base)
    try:
        merged = peft.PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
    except (OSError, RuntimeError, ValueError, safetensors.SafetensorError) as error:
        raise CheckpointCorrupt(f"the adapters in {folder} cannot be read: {error}") from error
    writing = into.with_name(f".writing-{into.name}-{os.getpid()}")
    writing.mkdir(parents=True)
    for file in model_files(base):
        shutil.copyfile(file, writing / file.name)
    weights = {name: parameter.detach().to(precision) for name, parameter in merged.named_parameters()}
    write_weights(writing, stored_layers(merged, [weights]))
    writing.rename(into)


def _precision(base: Path) -> torch.dtype:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(base)
    return config.dtype or getattr(config.get_text_config(), "dtype", None) or torch.float32
