"""Makes transformers' models fast to train, on packed sequences too.

Invariant: each part keeps parameters, names and results (up to rounding).
"""

from torch import nn

from trainer.fast_layers.image_attention import batched_image_attention
from trainer.fast_layers.linear_layers import fast_linear_layers
from trainer.fast_layers.norms import fast_norms
from trainer.fast_layers.patch_embedding import fast_patch_embedding
from trainer.fast_layers.recurrent_layers import packed_recurrent_layers


def accelerate(model: nn.Module) -> None:
    """For models with float32 weights most of it; for others what concerns them, and what packing needs."""
    fast_patch_embedding(model)
    batched_image_attention(model)
    packed_recurrent_layers(model)
    fast_norms(model)
    fast_linear_layers(model)
