"""Augmentations of what is trained on, one a file: a sample that says the same in other words, or shows the same otherwise.

    @augmentation("mirrored")
    class Mirrored:
        def __init__(self, model: Path) -> None: ...

        def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample: ...

A sample keeps its number of completion tokens, each of which is worth what it was. Losses that keep near the policies that
sampled the tokens may not use them: nobody sampled these. Those that keep near the policy at the start of the update may:
it is asked about the varied samples too. What weighs a sample then says how much less often it would be said there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from schemas.extensions import AUGMENTATIONS

if TYPE_CHECKING:
    import numpy as np

    from trainer.samples import Sample


class Augmentation(Protocol):
    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Another sample every time, or the same; a function of what it is given alone."""
        ...


Made = TypeVar("Made", bound=Callable[[Path], Augmentation])


def augmentation(name: str) -> Callable[[Made], Made]:
    """Declares an augmentation: a class, or a function, made with the folder of the model that is trained."""
    return lambda made: AUGMENTATIONS.declare(name, made, None)


def varied(samples: Sequence[Sample], vary: Augmentation, *, seed: tuple[int, ...]) -> list[Sample]:
    """Equal for an equal seed, whatever was varied before."""
    import numpy as np

    rng = np.random.default_rng(seed)
    return [vary(sample, rng) for sample in samples]


def opened_augmentation(name: str, model: Path) -> Augmentation | None:
    """Raises `ConfigurationError` where there is none of that name; None for `none`."""
    if name == "none":
        return None
    made: Callable[[Path], Augmentation] = AUGMENTATIONS.find(name).made
    return made(model)
