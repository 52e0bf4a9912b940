"""Makes the vision tower attend to all screenshots of a micro-batch at once.

transformers attends to one screenshot after another wherever flash-attn is not installed; screenshots of one size can stand
side by side.
Invariant: parameters, their names and the results (up to rounding) stay the same; checkpoints are not affected.
"""

from types import MethodType
from typing import Any

import torch
from torch import nn

from trainer.fast_layers.rotary import rotate
from trainer.model.packed_attention import as_it_is, attend
from trainer.model.packing import Packing


def batched_image_attention(model: nn.Module) -> int:
    """Replaces the forward pass of every vision attention of Qwen's and GLM's kind in `model`; returns how many there were."""
    layers = [module for module in model.modules() if _is_one(module)]
    for layer in layers:
        layer.forward = MethodType(_attend, layer)
    return len(layers)


@as_it_is
def _packing(cu_seqlens: torch.Tensor) -> Packing:
    return Packing(tuple(cu_seqlens.diff().tolist()))


def _is_one(module: nn.Module) -> bool:
    """InternVL's attention, of a similar name, has its tiles side by side already."""
    return type(module).__name__.endswith("VisionAttention") and hasattr(module, "qkv")


def _attend(
    layer: Any,
    hidden_states: torch.Tensor,
    cu_seqlens: torch.Tensor,
    position_embeddings: tuple[torch.Tensor, torch.Tensor],
    frames: Packing | None = None,
    **_: Any,
) -> torch.Tensor:
    """(patches, width) to the same shape; `frames` spares asking the device for the sizes between `cu_seqlens`."""
    packing = frames or _packing(cu_seqlens)
    projected = layer.qkv(hidden_states).unflatten(-1, (3, layer.num_heads, -1))
    cosines, sines = position_embeddings
    rotated = rotate(projected[:, :2], cosines[:, None, None], sines[:, None, None])
    query, key = rotated.unbind(1)
    attended = attend(query, key, projected[:, 2], packing, causal=False, scale=layer.scaling)
    found: torch.Tensor = layer.proj(attended.flatten(1))
    return found
