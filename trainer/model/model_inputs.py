"""Builds the arguments that a model is called with for one packed micro-batch."""

from typing import Any

from torch import nn

from trainer.model.batches import Batch
from trainer.model.families import family_of


def model_inputs(model: nn.Module, batch: Batch) -> dict[str, Any]:
    """The keyword arguments of `model`, the part of an accelerated network below `lm_head`."""
    family = family_of(model.config)
    return {"input_ids": batch.tokens, "use_cache": False, "sequences": batch.packing, **family.inputs(model, batch)}
