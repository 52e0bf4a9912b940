"""Models that see a screenshot in its own proportions, as one grid of patches, and place its tokens by row and column."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from transformers import AutoModelForImageTextToText
from transformers.vision_utils import get_vision_interpolation_indices_and_weights, get_vision_position_ids

from trainer.model.batches import Batch
from trainer.samples import Grid, Patches


class GridFamily:
    """Qwen's models and GLM's."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self._vision = config.vision_config

    @property
    def patches_a_token(self) -> int:
        return int(self._vision.spatial_merge_size) ** 2

    def cut(self, processor: Any, screenshots: Sequence[Image.Image]) -> list[Patches]:
        cut = processor(images=list(screenshots), do_rescale=False, do_normalize=False, return_tensors="pt")
        grids = [(frames, rows, columns) for frames, rows, columns in cut["image_grid_thw"].tolist()]
        pixels = cut["pixel_values"].to(torch.uint8)
        shape = (len(pixels), len(processor.image_mean), int(processor.temporal_patch_size), -1)
        still = pixels.view(shape)[:, :, 0].reshape(len(pixels), -1).numpy()
        ends = np.cumsum([frames * rows * columns for frames, rows, columns in grids])
        parts = np.split(still, ends[:-1])
        return [Patches(np.ascontiguousarray(part), grid) for part, grid in zip(parts, grids, strict=True)]

    def positions(self, tokens: np.ndarray, is_image: np.ndarray, grids: Sequence[Grid]) -> np.ndarray:
        found, _ = self._placing.get_rope_index(
            torch.from_numpy(tokens)[None],
            mm_token_type_ids=torch.from_numpy(is_image.astype(np.int32))[None],
            image_grid_thw=torch.tensor(grids, dtype=torch.long) if grids else None,
        )
        placed: np.ndarray = found[:, 0].numpy().astype(np.int32)
        return placed

    def inputs(self, model: nn.Module, batch: Batch) -> dict[str, Any]:
        """Screenshots of one size need the same tables: made once a size, and handed to the vision tower, which would make
        them anew in every pass."""
        placed: dict[str, Any] = {"position_ids": batch.positions}
        if batch.raw is None:
            return placed
        visual: Any = model.visual
        device = batch.raw.device
        merge = int(self._vision.spatial_merge_size)
        placed |= {
            "pixel_values": batch.scale.still(batch.raw),
            "image_grid_thw": batch.grids,
            "image_position_ids": torch.cat([_places(grid, merge, device) for grid in batch.shapes]),
            "image_cu_seqlens": batch.frames.ends(device),
        }
        if not hasattr(visual, "fullatt_block_indexes"):  # layers that look at windows have sequences of their own
            placed["image_frames"] = batch.frames
        if hasattr(visual, "num_grid_per_side"):
            layout = (visual.num_grid_per_side, visual.interpolation_mode, visual.interpolation_align_corners)
            tables = [_table(grid, *layout, merge, device) for grid in batch.shapes]
            indices, weights = (torch.cat(parts) for parts in zip(*tables, strict=True))
            placed |= {"image_interp_indices": indices, "image_interp_weights": weights}
        return placed

    def smallest(self) -> Patches:
        side, vision = int(self._vision.spatial_merge_size), self._vision
        values = int(vision.in_channels) * int(vision.patch_size) ** 2
        return Patches(np.zeros((side * side, values), dtype=np.uint8), (1, side, side))

    @cached_property
    def _placing(self) -> Any:
        """The model that has `get_rope_index` as a method, which needs no weights: on the meta device."""
        with torch.device("meta"):
            return AutoModelForImageTextToText.from_config(self._config).model


@lru_cache(maxsize=1024)
def _places(grid: Grid, merge: int, device: torch.device) -> torch.Tensor:
    """Of one screenshot, (patches, 2): each patch's row and column."""
    places: torch.Tensor = get_vision_position_ids(torch.tensor([grid], device=device), merge)
    return places


@lru_cache(maxsize=1024)
def _table(
    grid: Grid, side: int, mode: str, align_corners: bool, merge: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of one screenshot: indices and weights into the model's own position table, (patches, taps) each."""
    with torch.no_grad():
        indices, weights = get_vision_interpolation_indices_and_weights(
            torch.tensor([grid], device=device),
            num_grid_per_side=side,
            mode=mode,
            align_corners=align_corners,
            spatial_merge_size=merge,
        )
        return indices, weights
