"""What the trainer has to know of a family of models; the rest is the same for all that transformers loads."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from PIL import Image
from torch import nn

from trainer.model.batches import Batch
from trainer.samples import Grid, Patches


class Family(Protocol):
    """Of one model, by its configuration alone: no weights are needed."""

    @property
    def patches_a_token(self) -> int:
        """How many of a screenshot's patches one image token stands for."""

    def cut(self, processor: Any, screenshots: Sequence[Image.Image]) -> list[Patches]:
        """At least one screenshot, as the model's own image processor cuts it, before normalisation."""

    def positions(self, tokens: np.ndarray, is_image: np.ndarray, grids: Sequence[Grid]) -> np.ndarray:
        """Where each token stands, int32, (axes, length).

        Args:
            tokens: int64, (length,).
            is_image: bool, (length,).
            grids: of the screenshots, in order.
        """

    def inputs(self, model: nn.Module, batch: Batch) -> dict[str, Any]:
        """The keyword arguments that an accelerated `model`, the part below `lm_head`, is called with for a micro-batch,
        beside its tokens."""

    def smallest(self) -> Patches:
        """A black screenshot of as few tokens as the model can be shown."""
