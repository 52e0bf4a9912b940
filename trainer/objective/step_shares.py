"""The shares of the tokens of an iteration's episodes in its optimizer steps."""

from collections.abc import Collection, Sequence

import numpy as np

from schemas.messages import RecordRef
from schemas.objective_config import ObjectiveConfig
from trainer.objective.aggregation import IterationCounts, token_weights
from trainer.objective.credit import Episode


class StepShares:
    """Every step of every episode counts, those that need no computing included."""

    def __init__(self, episodes: Sequence[Episode], objective: ObjectiveConfig, idle: Collection[RecordRef] = ()) -> None:
        """`idle`: steps without a gradient, whose tokens weigh nothing themselves."""
        self._objective = objective
        self._idle = idle
        self._lengths = {ref: length for episode in episodes for ref, length in episode.steps.items()}
        self._iteration = IterationCounts.of((ref.episode, length) for ref, length in self._lengths.items())

    def of(self, refs: Sequence[RecordRef]) -> dict[RecordRef, np.ndarray]:
        """float64, (completion,) of each step of one optimizer step."""
        weights = token_weights(
            [np.ones(self._lengths[ref]) for ref in refs],
            self._objective.loss_agg_mode,
            scale_factor=self._objective.loss_scale_factor,
            episodes=[ref.episode for ref in refs],
            iteration=self._iteration,
        )
        return {ref: share * (ref not in self._idle) for ref, share in zip(refs, weights, strict=True)}
