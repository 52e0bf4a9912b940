"""What token losses are computed from, and what they answer. Loads without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class Outputs:
    """What the model says of a batch's N completion tokens. (DeepSpeed's hooks look into it by `vars`: no slots.)"""

    logprobs: torch.Tensor
    """float32, (N,)."""
    entropies: torch.Tensor | None = None
    """float32, (N,): of the whole distribution at each token; None when the objective did not ask for it."""


@dataclass(frozen=True, eq=False)
class TokenTargets:
    """What N completion tokens are trained towards: float32, (N,) each. What an objective does not use is zero."""

    weights: torch.Tensor
    """Each token's share in the loss of the whole optimizer step, see `trainer.objective.aggregation`; 0: not trained on."""
    advantages: torch.Tensor
    behaviour: torch.Tensor
    """Log-probabilities under the policies that sampled the tokens."""
    proximal: torch.Tensor
    """Log-probabilities under the policy at the start of the update."""
    reference: torch.Tensor
    """Log-probabilities under the frozen reference."""
    values: torch.Tensor
    """The critic's, at the start of the update."""
    returns: torch.Tensor
    """What the critic is trained towards."""
    staleness: torch.Tensor
    """How many versions the policy at the start of the update is ahead of the one that sampled the token."""
    sequences: torch.Tensor
    """int64, (N,): the sequence of each token; one is a step of an episode. Numbers are below N."""

    @classmethod
    def of(cls, advantages: torch.Tensor, **given: torch.Tensor) -> TokenTargets:
        """Those of some tokens by hand: weights are 1, all are of one sequence, the rest is zero, unless it is given.

        Example: `TokenTargets.of(torch.tensor([1.0, -1.0]), behaviour=torch.tensor([-0.5, -2.0]))`.
        """
        zeros = advantages.new_zeros(advantages.shape)
        rest = {each.name: zeros for each in fields(cls)} | {"weights": zeros + 1, "sequences": zeros.long()}
        return cls(**rest | {"advantages": advantages} | given)

    @property
    def trained(self) -> torch.Tensor:
        """float32, (N,): 1 where a token is trained on."""
        return (self.weights != 0).to(self.weights.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class TokenLosses:
    """Of one micro-batch."""

    losses: torch.Tensor
    """float32, (N,)."""
    metrics: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """Detached, (N,) each: reported as means over the step's trained tokens, all micro-batches and ranks. Their names
    depend on the configuration alone."""
    ratios: torch.Tensor | None = None
    """Detached, (N,): of the policy to the one that the loss keeps it near; None for losses that know no ratio."""
