"""PPO's clipped surrogate: what all losses of a ratio share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.token_losses import TokenLosses

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class Surrogate:
    """max(-rho A, -clip(rho, 1 - low, 1 + high) A); with a dual clip, at most c * |A| where A < 0 (Dual-clip PPO)."""

    clip_ratio_low: float = 0.2
    clip_ratio_high: float = 0.2
    clip_ratio_c: float = 0.0
    """0: off."""

    def surrogate(self, ratios: torch.Tensor, advantages: torch.Tensor) -> TokenLosses:
        """`ratios` and `advantages`: (N,). The metrics are shares of tokens."""
        held = ratios.clamp(1.0 - self.clip_ratio_low, 1.0 + self.clip_ratio_high)
        losses = (-ratios * advantages).maximum(-held * advantages)
        worse = advantages < 0
        metrics = {
            "clipped_low": worse & (ratios < 1.0 - self.clip_ratio_low),
            "clipped_high": (advantages > 0) & (ratios > 1.0 + self.clip_ratio_high),
        }
        if self.clip_ratio_c:
            bound = -self.clip_ratio_c * advantages
            metrics["dual_clipped"] = worse & (losses > bound)
            losses = losses.minimum(bound).where(worse, losses)
        return TokenLosses(losses, {name: found.to(losses.dtype) for name, found in metrics.items()}, ratios.detach())
