"""Filtered behaviour cloning with an importance weight (RAFT++)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from schemas.objective_config import WeightLevel
from trainer.losses import loss
from trainer.losses.truncated import Truncated
from trainer.token_losses import TokenLosses, TokenTargets

if TYPE_CHECKING:
    import torch


@loss("weighted_cloning", imitates=True, ratio=True, proximal=True)
@dataclass(frozen=True, kw_only=True)
class WeightedCloning:
    """The truncated loss with advantage 1: -w * min(rho, 1 + high), with rho = pi / pi_proximal.

    RAFT++ is PPO's loss with advantage 1 for every successful episode. Replayed ones may come from policies several versions
    back, which w = min(pi_proximal / pi_behaviour, cap) allows for. At rho = 1 its gradient is w times that of cloning.
    """

    clip_ratio_high: float = 0.2
    importance_weight_cap: float = 2.0
    importance_weight_level: WeightLevel = "token"

    def __call__(self, logprobs: torch.Tensor, targets: TokenTargets) -> TokenLosses:
        truncated = Truncated(
            clip_ratio_high=self.clip_ratio_high,
            importance_weight_cap=self.importance_weight_cap,
            importance_weight_level=self.importance_weight_level,
        )
        return truncated(logprobs, replace(targets, advantages=targets.advantages.new_ones(targets.advantages.shape)))
