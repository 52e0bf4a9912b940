"""Importance ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


_BOUND = 20.0
"""In nats. Beyond it every clip and cap has long decided; without it float32 would overflow."""


def importance_ratio(logprobs: torch.Tensor, under: torch.Tensor) -> torch.Tensor:
    """exp(logprobs - under), (N,), with the difference held to 20 nats either way."""
    return ratio_of(logprobs - under)


def ratio_of(differences: torch.Tensor) -> torch.Tensor:
    """exp(differences), held to 20 nats either way; beyond that without a gradient."""
    return differences.clamp(-_BOUND, _BOUND).exp()
