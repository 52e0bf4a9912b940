"""DPPO with a mask by total variation: tokens whose probability moved too far are left out, whatever their ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.losses import loss
from trainer.token_losses import TokenLosses, TokenTargets
from trainer.token_losses.ratios import importance_ratio

if TYPE_CHECKING:
    import torch


@loss("dppo_tv", ratio=True)
@dataclass(frozen=True, kw_only=True)
class DppoTv:
    """-A rho + c (log rho)^2, with rho = pi / pi_behaviour; without its first term where pi - pi_behaviour is above `tv_high`
    and A > 0, or below -`tv_low` and A <= 0.

    A ratio bounds rare tokens tightly and frequent ones hardly; the difference of the probabilities treats both alike.
    """

    tv_low: float = 0.2
    tv_high: float = 0.2
    tv_kl_coef: float = 1e-3
    """c."""

    def __call__(self, logprobs: torch.Tensor, targets: TokenTargets) -> TokenLosses:
        ratios = importance_ratio(logprobs, targets.behaviour)
        moved = logprobs.detach().exp() - targets.behaviour.exp()
        better = targets.advantages > 0
        high, low = better & (moved > self.tv_high), ~better & (moved < -self.tv_low)
        losses = (-targets.advantages * ratios).masked_fill(high | low, 0.0)
        losses = losses + self.tv_kl_coef * (logprobs - targets.behaviour).square()
        metrics = {"clipped_low": low, "clipped_high": high}
        return TokenLosses(losses, {name: found.to(losses.dtype) for name, found in metrics.items()}, ratios.detach())
