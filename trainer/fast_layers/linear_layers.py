"""Linear layers on a CPU by oneDNN, which uses the widest instructions of every maker's processors.

torch takes MKL for float32, which runs at half the speed of other makers' processors. Invariant: results are torch's up to
rounding, and the same in every run; parameters stay where they are, so ZeRO may take and bring them between the passes.
"""

import os
from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.nn import functional

_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
"""oneDNN's and, before it, torch's. Packed batches differ in their number of rows, and each keeps what it made for a thousand
products, some hundred KiB apiece."""
_MOST_CACHED = 64
"""Products; an optimizer step of a small model has thirty different ones."""


def fast_linear_layers(model: nn.Module) -> int:
    """Replaces the forward pass of every linear layer of `model`; returns how many there were.

    Where nobody has said otherwise, bounds what oneDNN remembers of products, if this process has made none yet.
    """
    for cache in _CACHES:
        os.environ.setdefault(cache, str(_MOST_CACHED))
    layers = [module for module in model.modules() if type(module) is nn.Linear]
    for layer in layers:
        layer.forward = MethodType(_forward, layer)  # type: ignore[method-assign]
    return len(layers)


def linear(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """(..., k) times the transpose of (n, k), plus (n,)."""
    by_onednn = inputs.device.type == "cpu" and weight.dtype == inputs.dtype == torch.float32 and _HAS_ONEDNN
    if not by_onednn or torch.compiler.is_compiling():
        return functional.linear(inputs, weight, bias)
    found: torch.Tensor = _Linear.apply(inputs.reshape(-1, inputs.shape[-1]), weight, bias)  # type: ignore[no-untyped-call]
    return found.view(*inputs.shape[:-1], -1)


_HAS_ONEDNN = hasattr(torch.ops.mkldnn, "_linear_pointwise")


def _forward(layer: nn.Linear, inputs: torch.Tensor) -> torch.Tensor:
    return linear(inputs, layer.weight, layer.bias)


def _product(left: torch.Tensor, right: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """(m, k) times the transpose of (n, k); any strides."""
    found: torch.Tensor = torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")
    return found


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        context.save_for_backward(inputs, weight)
        context.has_bias = bias is not None
        return _product(inputs, weight, bias)

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (gradient,) = gradients
        inputs, weight = context.saved_tensors
        needs_inputs, needs_weight, needs_bias = context.needs_input_grad
        return (
            _product(gradient, weight.t()) if needs_inputs else None,
            _weight_gradient(gradient, inputs) if needs_weight else None,
            gradient.sum(0) if needs_bias and context.has_bias else None,
        )


def _weight_gradient(gradient: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    """(n, k) from (m, n) and (m, k), with the longer side of the result in front."""
    if gradient.shape[1] <= inputs.shape[1]:
        return _product(gradient.t(), inputs.t())
    return _product(inputs.t(), gradient.t()).t().contiguous()
