"""Objectives, one a file. An objective gives every completion token its loss; aggregation is the same for all.

The step's loss is the sum of weight * token loss over all micro-batches and ranks, divided by the step's global sum of
weights: the mean over tokens, and the same however the batch is split.
"""

from typing import Protocol

import torch

from trainer.batches import Batch


class Objective(Protocol):
    """Token losses from the trainer's log-probabilities, float32 (N,) -> (N,)."""

    def __call__(self, logprobs: torch.Tensor, batch: Batch) -> torch.Tensor: ...
