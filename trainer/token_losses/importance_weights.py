"""Importance weights of the sampler against the policy at the start of the update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from schemas.objective_config import WeightLevel
from trainer.token_losses.ratios import importance_ratio, ratio_of
from trainer.token_losses.sequences import sequence_means, sequence_sums

if TYPE_CHECKING:
    import torch

    from trainer.token_losses import TokenTargets


@dataclass(frozen=True, kw_only=True)
class ImportanceWeights:
    """w = pi_proximal / pi_behaviour, which no gradient passes through."""

    importance_weight_level: WeightLevel = "token"
    """`token`: of each alone. `sequence`: the product over its sequence. `sequence-mean`: the geometric mean over it."""

    def weights(self, targets: TokenTargets) -> torch.Tensor:
        """(N,)."""
        differences = targets.proximal - targets.behaviour
        match self.importance_weight_level:
            case "token":
                return importance_ratio(targets.proximal, targets.behaviour)
            case "sequence":
                return ratio_of(sequence_sums(differences, targets))
            case "sequence-mean":
                return ratio_of(sequence_means(differences, targets))
