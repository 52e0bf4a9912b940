"""The critic's loss: the squared error of values, held near the old ones (PPO)."""

from dataclasses import dataclass

import torch

from trainer.token_losses import TokenLosses, TokenTargets


@dataclass(frozen=True)
class ValueLoss:
    """0.5 * max((V - R)^2, (V_old + clip(V - V_old, -value_clip, value_clip) - R)^2)."""

    value_clip: float = 0.2
    """0: off."""

    def __call__(self, values: torch.Tensor, targets: TokenTargets) -> TokenLosses:
        """`values`: (N,), of the critic before each completion token."""
        errors = (values - targets.returns).square()
        metrics = {"value": values.detach(), "value_error": errors.detach()}
        if self.value_clip:
            moved = (values - targets.values).clamp(-self.value_clip, self.value_clip)
            held = (targets.values + moved - targets.returns).square()
            metrics["value_clipped"] = (held > errors).to(values.dtype)
            errors = torch.maximum(errors, held)
        return TokenLosses(0.5 * errors, metrics)
