"""An augmentation of one's own, for a run whose configuration names it:

algorithm_config:
  augmentation: examples/own_augmentation.py:grey
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from trainer.augmentations import augmentation
from trainer.samples import Sample


@augmentation("grey")
class Grey:
    """Now and then the screenshots of a sample lose their colours."""

    def __init__(self, model: Path) -> None: ...

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        if rng.random() < 0.8:
            return sample
        screenshots = tuple(replace(each, raw=_grey(each.raw)) for each in sample.screenshots)
        return replace(sample, screenshots=screenshots)


def _grey(raw: np.ndarray) -> np.ndarray:
    """(patches, channels * pixels), as many of each of three channels."""
    channels = raw.reshape(len(raw), 3, -1)
    return np.repeat(channels.mean(axis=1, keepdims=True), 3, axis=1).astype(raw.dtype).reshape(raw.shape)
