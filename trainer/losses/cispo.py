"""CISPO: policy gradients whose importance weight is clipped, not their tokens (MiniMax-M1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.losses import loss
from trainer.token_losses import TokenLosses, TokenTargets
from trainer.token_losses.ratios import importance_ratio

if TYPE_CHECKING:
    import torch


@loss("cispo", ratio=True, skips_zero_advantage=True)
@dataclass(frozen=True, kw_only=True)
class Cispo:
    """-sg(clip(rho, 1 - low, 1 + high)) A log pi, with rho = pi / pi_behaviour: every token keeps a gradient."""

    clip_ratio_low: float = 0.2
    clip_ratio_high: float = 0.2

    def __call__(self, logprobs: torch.Tensor, targets: TokenTargets) -> TokenLosses:
        ratios = importance_ratio(logprobs.detach(), targets.behaviour)
        low, high = 1.0 - self.clip_ratio_low, 1.0 + self.clip_ratio_high
        losses = -ratios.clamp(low, high) * targets.advantages * logprobs
        metrics = {"clipped_low": ratios < low, "clipped_high": ratios > high}
        return TokenLosses(losses, {name: found.to(losses.dtype) for name, found in metrics.items()}, ratios)
