"""Screenshots a little brighter or darker: what is learnt of a page does not depend on its exact colours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.augmentations import augmentation

if TYPE_CHECKING:
    import numpy as np

    from trainer.samples import Sample

_MOST = 0.1


@augmentation("brightness")
class Brightness:
    """All screenshots of a sample by the same factor, of 0.9 to 1.1."""

    def __init__(self, model: Path) -> None: ...

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        factor = rng.uniform(1 - _MOST, 1 + _MOST)
        screenshots = tuple(
            replace(each, raw=(each.raw * factor).clip(0, 255).astype(each.raw.dtype)) for each in sample.screenshots
        )
        return replace(sample, screenshots=screenshots)
