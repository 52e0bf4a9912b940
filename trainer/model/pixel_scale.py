"""From patches as bytes to a model's input."""

from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoImageProcessor


@dataclass(frozen=True)
class PixelScale:
    """Turns raw patches into the model's input: the processor's own arithmetic, in its order."""

    mean: torch.Tensor
    """float32, (channels,), on the 0-255 scale."""
    std: torch.Tensor
    frames: int
    """Times a still screenshot is repeated."""

    def apply(self, raw: torch.Tensor) -> torch.Tensor:
        """uint8 (patches, channels * area) to float32 (patches, channels * frames * area)."""
        still = self.still(raw).view(len(raw), len(self.mean), 1, -1)
        return still.expand(-1, -1, self.frames, -1).reshape(len(raw), -1)

    def still(self, raw: torch.Tensor) -> torch.Tensor:
        """The same without repeating a screenshot: float32 (patches, channels * area)."""
        channels = len(self.mean)
        pixels = raw.to(torch.float32).view(len(raw), channels, -1)
        mean, std = (values.to(raw.device).view(channels, 1) for values in (self.mean, self.std))
        return pixels.sub_(mean).div_(std).view(len(raw), -1)


def pixel_scale(folder: Path) -> PixelScale:
    """The scale of the model in `folder`, from its processor's settings."""
    images = AutoImageProcessor.from_pretrained(folder)
    return PixelScale(
        mean=torch.tensor(images.image_mean) * (1.0 / images.rescale_factor),
        std=torch.tensor(images.image_std) * (1.0 / images.rescale_factor),
        frames=int(getattr(images, "temporal_patch_size", 1)),
    )
