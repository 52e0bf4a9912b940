"""Builds the arguments that a Qwen3-VL is called with for one packed micro-batch.

Screenshots of one size need the same tables (which rows of the position table they mix, and where each patch stands): made
once a size, and handed to the vision tower, which would make them anew in every pass.
"""

from functools import lru_cache
from typing import Any

import torch
from torch import nn
from transformers.vision_utils import get_vision_interpolation_indices_and_weights, get_vision_position_ids

from trainer.model.batches import Batch, Grid


def model_inputs(model: nn.Module, batch: Batch) -> dict[str, Any]:
    """The keyword arguments of `model`, the part of an accelerated network below `lm_head`."""
    inputs: dict[str, Any] = {
        "input_ids": batch.tokens,
        "position_ids": batch.positions,
        "use_cache": False,
        "sequences": batch.packing,
    }
    if batch.raw is None:
        return inputs
    visual: Any = model.visual
    layout = (visual.num_grid_per_side, visual.interpolation_mode, visual.interpolation_align_corners)
    device = batch.raw.device
    tables = [_tables(grid, *layout, visual.config.spatial_merge_size, device) for grid in batch.shapes]
    indices, weights, places = (torch.cat(parts) for parts in zip(*tables, strict=True))
    return inputs | {
        "pixel_values": batch.scale.still(batch.raw),
        "image_grid_thw": batch.grids,
        "image_interp_indices": indices,
        "image_interp_weights": weights,
        "image_position_ids": places,
        "image_cu_seqlens": batch.frames.ends(device),
        "image_frames": batch.frames,
    }


@lru_cache(maxsize=1024)
def _tables(
    grid: Grid, side: int, mode: str, align_corners: bool, merge: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of one screenshot: indices and weights into the position table, (patches, taps) each, and (patches, 2) places."""
    alone = torch.tensor([grid], device=device)
    with torch.no_grad():
        indices, weights = get_vision_interpolation_indices_and_weights(
            alone, num_grid_per_side=side, mode=mode, align_corners=align_corners, spatial_merge_size=merge
        )
        return indices, weights, get_vision_position_ids(alone, merge)
