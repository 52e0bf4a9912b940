"""Makes the screenshot encoder's first layer fast.

The models of `GridFamily` get a screenshot in patches, so their patch embedding is a Conv3d whose kernel covers each
input exactly once: a matrix product in disguise. torch's CPU convolution is several times slower at this shape. All frames of
a still screenshot are equal, so it need not be repeated: in float32, the frames' weights are added instead.
Invariant: parameters, their names and the results (up to rounding) stay the same; checkpoints are not affected.
"""

from __future__ import annotations

from types import MethodType

import torch
from torch import nn

from trainer.fast_layers.linear_layers import linear


def fast_patch_embedding(model: nn.Module) -> int:
    """Replaces the forward pass of every patch embedding of Qwen's and GLM's kind in `model` by one matrix product.

    Returns:
        How many layers were replaced: 1, or 0 for a model without a screenshot encoder of this kind.

    Raises:
        ValueError: a patch embedding whose kernel does not cover its input exactly once.
    """
    layers = [module for module in model.modules() if type(module).__name__.endswith("VisionPatchEmbed")]
    for layer in layers:
        projection = layer.proj
        if not isinstance(projection, nn.Conv3d) or projection.kernel_size != projection.stride:
            raise ValueError(f"the patch embedding is {projection}, not a Conv3d whose stride equals its kernel")
        layer.forward = MethodType(_project, layer)
    return len(layers)


def _project(layer: nn.Module, patches: torch.Tensor) -> torch.Tensor:
    """(patches, channels * frames * height * width), or with one frame alone where all are equal, to (patches, width)."""
    projection = layer.proj
    assert isinstance(projection, nn.Conv3d)
    weight, (_, channels, frames, *_) = projection.weight, projection.weight.shape
    patches = patches.to(weight.dtype)
    if patches.shape[1] * frames == weight[0].numel():
        if weight.dtype == torch.float32:
            weight = weight.sum(dim=2)
        else:
            # Added weights would be rounded once more than the sampler's.
            patches = patches.view(-1, channels, 1, patches.shape[1] // channels).expand(-1, -1, frames, -1)
    weight = weight.flatten(start_dim=1)
    return linear(patches.reshape(-1, weight.shape[1]), weight, projection.bias)
