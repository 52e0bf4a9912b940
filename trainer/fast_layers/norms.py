"""Root-mean-square norms in few passes over memory. Source: Zhang and Sennrich 2019, as Qwen3-VL's text layers use it.

Invariant: parameters and results (up to rounding) stay the same.
"""

from types import MethodType
from typing import Any

import torch
from torch import nn


def fast_norms(model: nn.Module) -> int:
    """Replaces the forward pass of every Qwen3-VL text norm in `model`; returns how many there were."""
    layers = [module for module in model.modules() if type(module).__name__ == "Qwen3VLTextRMSNorm"]
    for layer in layers:
        layer.forward = MethodType(_forward, layer)
    return len(layers)


def _forward(layer: Any, inputs: torch.Tensor) -> torch.Tensor:
    if inputs.dtype != torch.float32 or torch.compiler.is_compiling():
        forward: torch.Tensor = type(layer).forward(layer, inputs)
        return forward
    found: torch.Tensor = _Norm.apply(inputs, layer.weight, layer.variance_epsilon)  # type: ignore[no-untyped-call]
    return found


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, inputs: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        squares = torch.linalg.vector_norm(inputs, dim=-1, keepdim=True).square_()
        scale = squares.mul_(1.0 / inputs.shape[-1]).add_(epsilon).rsqrt_()
        normed = inputs * scale
        context.save_for_backward(normed, scale, weight)
        found: torch.Tensor = normed * weight
        return found

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (gradient,) = gradients
        normed, scale, weight = context.saved_tensors
        products = gradient * normed
        of_weight = products.flatten(0, -2).sum(0) if context.needs_input_grad[1] else None
        towards = (products @ weight)[..., None].mul_(1.0 / normed.shape[-1])
        return (gradient * weight).addcmul_(normed, towards, value=-1.0).mul_(scale), of_weight, None
