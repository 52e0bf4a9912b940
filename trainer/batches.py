"""Batches: samples of similar length side by side, with as little padding as they allow.

Padding stands on the right, where causal attention never looks from a real token: no attention mask is needed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch

from trainer.items import Item, Targets
from trainer.sample_builder import PixelScale


@dataclass(frozen=True, eq=False)
class Batch:
    """One micro-batch: B sequences of at most L tokens, with N completion tokens in all."""

    tokens: torch.Tensor
    """int64, (B, L)."""
    positions: torch.Tensor
    """int64, (3, B, L)."""
    pixels: torch.Tensor | None
    """float32, (patches, values)."""
    grids: torch.Tensor | None
    """int64, (pictures, 3)."""
    sequences: torch.Tensor
    """int64, (N,): the sample of each completion token, 0 to B - 1."""
    rows: torch.Tensor
    """int64, (N,): where its hidden state stands."""
    columns: torch.Tensor
    """int64, (N,): the position whose logits predict it: one before its own."""
    labels: torch.Tensor
    """int64, (N,): the tokens themselves."""
    temperatures: torch.Tensor
    """float32, (N,)."""
    weights: torch.Tensor
    """float32, (N,), as all below: see `trainer.items.Targets`."""
    advantages: torch.Tensor
    behaviour: torch.Tensor
    proximal: torch.Tensor
    reference: torch.Tensor
    values: torch.Tensor
    returns: torch.Tensor

    @property
    def trained(self) -> torch.Tensor:
        """float32, (N,): 1 where a token is trained on."""
        return (self.weights != 0).float()

    def to(self, device: torch.device) -> "Batch":
        if device.type == "cpu":
            return self
        held = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: dict[str, Any] = {name: tensor.to(device) if tensor is not None else None for name, tensor in held.items()}
        return Batch(**moved)


def collate(items: Sequence[Item], scale: PixelScale) -> Batch:
    """Joins samples into one micro-batch."""
    samples = [item.sample for item in items]
    length = max(len(sample.tokens) for sample in samples)
    tokens = np.zeros((len(samples), length), dtype=np.int64)
    positions = np.zeros((3, len(samples), length), dtype=np.int64)
    for row, sample in enumerate(samples):
        tokens[row, : len(sample.tokens)] = sample.tokens
        positions[:, row, : len(sample.tokens)] = sample.positions
    counts = [sample.num_completion for sample in samples]
    rows = np.repeat(np.arange(len(samples)), counts)
    columns = np.concatenate([np.arange(s.num_prompt, len(s.tokens)) for s in samples])
    pictures = [picture for sample in samples for picture in sample.pictures]
    joined = {
        field.name: torch.from_numpy(np.concatenate([getattr(item.targets, field.name) for item in items]))
        for field in fields(Targets)
    }
    return Batch(
        tokens=torch.from_numpy(tokens),
        positions=torch.from_numpy(positions),
        pixels=scale.apply(torch.from_numpy(np.concatenate([p.raw for p in pictures]))) if pictures else None,
        grids=torch.tensor([p.grid for p in pictures], dtype=torch.long) if pictures else None,
        sequences=torch.from_numpy(rows),
        rows=torch.from_numpy(rows),
        columns=torch.from_numpy(columns - 1),
        labels=torch.from_numpy(tokens[rows, columns]),
        temperatures=torch.from_numpy(np.repeat(np.array([s.temperature for s in samples], dtype=np.float32), counts)),
        **joined,
    )


Share = list[list[Item]]
"""One rank's micro-batches of one optimizer step."""


def deal(items: Sequence[Item], *, num_ranks: int, micro_batch: int) -> list[Share]:
    """Deals one optimizer step's samples to ranks: equally many micro-batches each, neighbours in length together.

    Ranks must do equally many backward passes, so places that stay empty repeat a sample with weight 0.

    Example: five samples, two ranks, micro-batches of two: [[s0, s2], [s4]] and [[s1, s3], [s0 with weight 0]].
    """
    ordered = sorted(items, key=lambda item: len(item.sample.tokens), reverse=True)
    per_rank = [ordered[rank::num_ranks] for rank in range(num_ranks)]
    num_micro = math.ceil(len(per_rank[0]) / micro_batch)
    shares = []
    for mine in per_rank:
        share = [mine[first : first + micro_batch] for first in range(0, num_micro * micro_batch, micro_batch)]
        shares.append([part or [ordered[0].idle] for part in share])
    return shares
