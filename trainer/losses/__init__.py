"""Policy losses, one a file: every completion token's loss from its log-probability and its targets.

Aggregation is the same for all and has happened before (`Batch.weights`): a loss file never divides by a number of tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import torch

from trainer.model.batches import Batch


@dataclass(frozen=True, eq=False)
class Outputs:
    """What the model says of a batch's N completion tokens. (DeepSpeed's hooks look into it by `vars`: no slots.)"""

    logprobs: torch.Tensor
    """float32, (N,)."""
    entropies: torch.Tensor | None = None
    """float32, (N,): of the whole distribution at each token; None when the objective did not ask for it."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenLosses:
    """Of one micro-batch."""

    losses: torch.Tensor
    """float32, (N,)."""
    figures: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """Detached, (N,) each: reported as means over the step's trained tokens, all micro-batches and ranks. Their names
    depend on the configuration alone."""
    ratios: torch.Tensor | None = None
    """Detached, (N,): of the policy to the one that the loss keeps it near; None for losses that know no ratio."""


class Loss(Protocol):
    """One file of this folder: logprobs float32 (N,) and the batch's targets -> losses (N,)."""

    def __call__(self, logprobs: torch.Tensor, batch: Batch) -> TokenLosses: ...
