"""The policy at the start of the update, guessed without a forward pass (A-3PO)."""

import torch

from trainer.token_losses import TokenTargets


def interpolated_proximal(logprobs: torch.Tensor, targets: TokenTargets) -> torch.Tensor:
    """log pi_proximal = log pi_behaviour + s / (s + 1) (log pi - log pi_behaviour), (N,), for tokens s versions old.

    Log-probabilities are taken to move by as much with every version: from the one that sampled a token to the one at the
    start of the update there are s, to the one that is being made s + 1. Fresh tokens have the sampler's own.
    """
    share = targets.staleness / (targets.staleness + 1.0)
    return targets.behaviour + share * (logprobs.detach() - targets.behaviour)
