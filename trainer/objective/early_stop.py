"""Early stop: sequences whose policy has moved too far contribute nothing."""

import torch

from trainer.token_losses import TokenTargets
from trainer.token_losses.sequences import sequence_means


def stopped(ratios: torch.Tensor, targets: TokenTargets, threshold: float) -> torch.Tensor:
    """bool, (N,): whether the mean ratio over the trained tokens of a token's sequence is above `threshold`."""
    return sequence_means(ratios, targets) > threshold
