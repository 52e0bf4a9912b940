"""Makes transformers' Qwen3-VL fast to train; each part keeps parameters, names and results (up to rounding)."""

from torch import nn

from trainer.fast_layers.image_attention import batched_image_attention
from trainer.fast_layers.linear_layers import fast_linear_layers
from trainer.fast_layers.norms import fast_norms
from trainer.fast_layers.patch_embedding import fast_patch_embedding


def accelerate(model: nn.Module) -> None:
    """For models with float32 weights most of it; for others what concerns them."""
    fast_patch_embedding(model)
    batched_image_attention(model)
    fast_norms(model)
    fast_linear_layers(model)
