"""Rejection: tokens, or whole sequences, that the sampler and the trainer see too differently contribute nothing (MIS)."""

from typing import assert_never

import torch

from schemas.objective_config import RejectionKind, RejectionLevel
from trainer.token_losses import TokenTargets
from trainer.token_losses.sequences import sequence_maxima, sequence_means, sequence_sums


def rejected(
    log_ratios: torch.Tensor, targets: TokenTargets, level: RejectionLevel, kind: RejectionKind, *, low: float, high: float
) -> torch.Tensor:
    """bool, (N,): whether a token is left out.

    With d = log pi - log pi_behaviour (`log_ratios`, held to 20 nats either way), k1 = d, k2 = d^2 / 2, k3 = exp(d) - 1 - d.
    Of k1, the ratio exp(k1) has to lie from `low` to `high`; k2 and k3 may be `high` at most. `level`: k of each token, or the
    sum, the mean or the largest of a sequence (of k1 the smallest too).
    """
    d = log_ratios.detach().clamp(-20.0, 20.0)
    match kind:
        case "k1":
            above = _by(level, d, targets).exp() > high
            return above | (-_by(level, -d, targets)).exp().lt(low)
        case "k2":
            return _by(level, d.square() / 2, targets) > high
        case "k3":
            return _by(level, d.exp() - 1.0 - d, targets) > high
    assert_never(kind)


def _by(level: RejectionLevel, values: torch.Tensor, targets: TokenTargets) -> torch.Tensor:
    match level:
        case "sequence-sum":
            return sequence_sums(values, targets)
        case "sequence-mean":
            return sequence_means(values, targets)
        case "sequence-max":
            return sequence_maxima(values, targets)
        case _:
            return values
