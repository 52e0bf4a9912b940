"""PPO's clipped surrogate: what all losses of a ratio share."""

from dataclasses import dataclass

import torch

from schemas.objective_config import ObjectiveConfig
from trainer.losses import TokenLosses


@dataclass(frozen=True)
class Surrogate:
    """max(-rho A, -clip(rho, 1 - low, 1 + high) A); with a dual clip, at most dual * |A| where A < 0 (Dual-clip PPO)."""

    low: float = 0.2
    high: float = 0.2
    dual: float = 0.0
    """0: off."""

    @staticmethod
    def of(config: ObjectiveConfig) -> "Surrogate":
        return Surrogate(config.clip_ratio_low, config.clip_ratio_high, config.clip_ratio_c)

    def __call__(self, ratios: torch.Tensor, advantages: torch.Tensor) -> TokenLosses:
        """`ratios` and `advantages`: (N,). The figures are shares of tokens."""
        held = ratios.clamp(1.0 - self.low, 1.0 + self.high)
        losses = torch.maximum(-ratios * advantages, -held * advantages)
        worse = advantages < 0
        figures = {
            "clipped_low": worse & (ratios < 1.0 - self.low),
            "clipped_high": (advantages > 0) & (ratios > 1.0 + self.high),
        }
        if self.dual:
            bound = -self.dual * advantages
            figures["dual_clipped"] = worse & (losses > bound)
            losses = torch.where(worse, torch.minimum(losses, bound), losses)
        return TokenLosses(losses, {name: found.to(losses.dtype) for name, found in figures.items()}, ratios.detach())
