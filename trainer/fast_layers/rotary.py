"""Rotary positions: pairs of features turned by their position's angle, in few passes over memory.

Source: RoFormer (Su et al. 2021), in the layout that transformers uses: feature i is paired with feature i + width / 2.
"""

from typing import Any

import torch


def rotate(features: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """(..., width) turned by angles whose cosines and sines can be broadcast to it; both halves of these are equal.

    Computed in float32, or better where the features are.
    """
    if torch.compiler.is_compiling():
        return _plainly_turned(features, cosines, sines)
    found: torch.Tensor = _Rotation.apply(features, cosines, sines)  # type: ignore[no-untyped-call]
    return found


def _plainly_turned(features: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """For a compiler to find the passes that can be spared."""
    precise = features.to(torch.promote_types(features.dtype, cosines.dtype))
    first, second = precise.chunk(2, dim=-1)
    return (precise * cosines + torch.cat([-second, first], dim=-1) * sines).to(features.dtype)


class _Rotation(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, features: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
        half = features.shape[-1] // 2
        cosines, sines = cosines[..., :half], sines[..., :half]
        context.save_for_backward(cosines, sines)
        return _turned(features, cosines, sines, 1.0)

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        # A rotation's transpose turns back.
        cosines, sines = context.saved_tensors
        return _turned(gradients[0], cosines, sines, -1.0), None, None


def _turned(features: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor, direction: float) -> torch.Tensor:
    precise = features.to(torch.promote_types(features.dtype, cosines.dtype))
    first, second = precise.chunk(2, dim=-1)
    turned = torch.empty(precise.shape, dtype=precise.dtype, device=precise.device)
    left, right = turned.chunk(2, dim=-1)
    torch.mul(first, cosines, out=left).addcmul_(second, sines, value=-direction)
    torch.mul(second, cosines, out=right).addcmul_(first, sines, value=direction)
    return turned.to(features.dtype)
