"""Models that see a screenshot as square tiles of one size and a small copy of the whole, and place tokens one by one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from trainer.model.batches import Batch
from trainer.samples import Grid, Patches


class TileFamily:
    """InternVL. A tile counts as a frame of the screenshot's grid."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self._vision = config.vision_config

    @property
    def patches_a_token(self) -> int:
        return round(1.0 / float(self._config.downsample_ratio) ** 2)

    def cut(self, processor: Any, screenshots: Sequence[Image.Image]) -> list[Patches]:
        # The model's whole processor asks for tiles, whatever the folder's image processor says when it is asked alone.
        cut = processor(
            images=list(screenshots), crop_to_patches=True, do_rescale=False, do_normalize=False, return_tensors="pt"
        )
        tiles = cut["pixel_values"].to(torch.uint8).flatten(1).numpy()
        counts = [int(count) for count in cut["num_patches"]]
        parts = np.split(tiles, np.cumsum(counts)[:-1])
        return [Patches(np.ascontiguousarray(part), (len(part), *self._side)) for part in parts]

    def positions(self, tokens: np.ndarray, is_image: np.ndarray, grids: Sequence[Grid]) -> np.ndarray:
        return np.arange(len(tokens), dtype=np.int32)[None]

    def inputs(self, model: nn.Module, batch: Batch) -> dict[str, Any]:
        # A mask would have a value for every pair of tokens; packed attention looks at none.
        layers: list[str] = self._config.text_config.layer_types
        placed: dict[str, Any] = {"position_ids": batch.positions[0], "attention_mask": dict.fromkeys(layers)}
        if batch.raw is not None:
            height, width = self._vision.image_size
            placed["pixel_values"] = batch.scale.still(batch.raw).view(len(batch.raw), -1, height, width)
        return placed

    def smallest(self) -> Patches:
        height, width = self._vision.image_size
        values = int(self._vision.num_channels) * int(height) * int(width)
        return Patches(np.zeros((1, values), dtype=np.uint8), (1, *self._side))

    @property
    def _side(self) -> tuple[int, int]:
        """Rows and columns of a tile, in patches."""
        (height, width), (rows, columns) = self._vision.image_size, self._vision.patch_size
        return int(height) // int(rows), int(width) // int(columns)
