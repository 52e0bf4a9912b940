"""Recurrent layers over packed sequences: each sequence begins without a past.

Qwen3.5's gated delta rule (and the convolution before it) would carry one sequence's state into the next: transformers knows
packed sequences only where a kernel library for GPUs is installed. Sequences of equal length that stand together are served
side by side.
"""

from types import MethodType
from typing import Any

import torch
from torch import nn

from trainer.model.packing import Packing


def packed_recurrent_layers(model: nn.Module) -> int:
    """Replaces the forward pass of every gated delta rule in `model`; returns how many there were."""
    layers = [module for module in model.modules() if type(module).__name__.endswith("GatedDeltaNet")]
    for layer in layers:
        layer.forward = MethodType(_each_alone, layer)
    return len(layers)


def _each_alone(
    layer: nn.Module, hidden_states: torch.Tensor, *, sequences: Packing | None = None, **others: Any
) -> torch.Tensor:
    """(1, rows, width) to the same shape where `sequences` are packed; otherwise as ever."""
    forward = type(layer).forward
    if sequences is None:
        plain: torch.Tensor = forward(layer, hidden_states, **others)
        return plain
    parts = torch.split(hidden_states[0], [count * length for count, length in sequences.runs])
    runs = zip(sequences.runs, parts, strict=True)
    found = [forward(layer, part.view(*run, -1), **others).flatten(0, 1) for run, part in runs]
    return torch.cat(found)[None]
