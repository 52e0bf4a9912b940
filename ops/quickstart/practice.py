"""What a warm start practises: the pages that are answered badly more than those that are answered well, and before anything
has been looked at, those of many steps more than those of few.

All pages then come to about the same success, and to learning by reward is left what it can do: no page is beyond its reach,
and few are finished before it begins.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ops.quickstart.examination import Demonstration
from trainer.samples import Sample

_LEAST = 0.02
"""What is answered well is practised now and then: it would be forgotten."""
_ENOUGH = 0.4
"""Success from which on a page is answered well."""
_SHARPNESS = 1.5
"""The power."""


class Practice:
    """Draws samples of demonstrations."""

    def __init__(self, shown: Sequence[Demonstration], *, seed: int) -> None:
        self.samples: list[Sample] = [sample for demonstration in shown for sample in demonstration.samples]
        self._pages = [demonstration.page for demonstration in shown for _ in demonstration.samples]
        self._weights = np.array([len(demonstration.samples) ** 2 for demonstration in shown for _ in demonstration.samples])
        self._rng = np.random.default_rng(seed)

    def look(self, success: Mapping[str, float]) -> None:
        """From now on each page is drawn by a power of what its success lacks, as a share of what is enough."""
        lacks = [max(0.0, 1.0 - success.get(page, 0.0) / _ENOUGH) for page in self._pages]
        self._weights = np.maximum(_LEAST, np.power(lacks, _SHARPNESS))

    def order(self, step_size: int) -> Iterator[np.ndarray]:
        """Indices of the samples of one optimizer step after the other, without end; in one step none comes twice."""
        count = min(step_size, len(self.samples))
        while True:
            yield self._rng.choice(len(self.samples), count, replace=False, p=self._weights / self._weights.sum())
