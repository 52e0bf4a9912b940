"""Importance ratios of single tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


_BOUND = 20.0
"""In nats. Beyond it every clip and cap has long decided; without it float32 would overflow."""


def importance_ratio(logprobs: torch.Tensor, under: torch.Tensor) -> torch.Tensor:
    """exp(logprobs - under), (N,), with the difference held to 20 nats either way."""
    return (logprobs - under).clamp(-_BOUND, _BOUND).exp()
