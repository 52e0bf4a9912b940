"""Batches: samples of similar length side by side, with as little padding as they allow.

Padding stands on the right, where causal attention never looks from a real token: no attention mask is needed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from trainer.sample_builder import PixelScale
from trainer.samples import Sample


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
    rows: torch.Tensor
    """int64, (N,): the sequence of each completion token."""
    columns: torch.Tensor
    """int64, (N,): the position whose logits predict it: one before its own."""
    targets: torch.Tensor
    """int64, (N,)."""
    temperatures: torch.Tensor
    """float32, (N,)."""
    weights: torch.Tensor
    """float32, (N,): each token's share in the loss; 0 for samples that only fill a rank's place."""

    def to(self, device: torch.device) -> "Batch":
        if device.type == "cpu":
            return self
        return Batch(
            tokens=self.tokens.to(device),
            positions=self.positions.to(device),
            pixels=self.pixels.to(device) if self.pixels is not None else None,
            grids=self.grids.to(device) if self.grids is not None else None,
            rows=self.rows.to(device),
            columns=self.columns.to(device),
            targets=self.targets.to(device),
            temperatures=self.temperatures.to(device),
            weights=self.weights.to(device),
        )


def collate(samples: Sequence[Sample], weights: Sequence[float], scale: PixelScale) -> Batch:
    """Joins samples into one micro-batch; every completion token of a sample gets its weight."""
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
    return Batch(
        tokens=torch.from_numpy(tokens),
        positions=torch.from_numpy(positions),
        pixels=scale.apply(torch.from_numpy(np.concatenate([p.raw for p in pictures]))) if pictures else None,
        grids=torch.tensor([p.grid for p in pictures], dtype=torch.long) if pictures else None,
        rows=torch.from_numpy(rows),
        columns=torch.from_numpy(columns - 1),
        targets=torch.from_numpy(tokens[rows, columns]),
        temperatures=torch.from_numpy(np.repeat(np.array([s.temperature for s in samples], dtype=np.float32), counts)),
        weights=torch.from_numpy(np.repeat(np.array(weights, dtype=np.float32), counts)),
    )


Share = list[list[tuple[Sample, float]]]
"""One rank's micro-batches of one optimizer step: samples with their weights."""


def deal(samples: Sequence[Sample], *, num_ranks: int, micro_batch: int) -> list[Share]:
    """Deals one optimizer step's samples to ranks: equally many micro-batches each, neighbours in length together.

    Ranks must do equally many backward passes, so places that stay empty repeat a sample with weight 0.

    Example: five samples, two ranks, micro-batches of two: [[s0, s2], [s4]] and [[s1, s3], [s0 with weight 0]].
    """
    ordered = sorted(samples, key=lambda sample: len(sample.tokens), reverse=True)
    per_rank = [[(sample, 1.0) for sample in ordered[rank::num_ranks]] for rank in range(num_ranks)]
    num_micro = math.ceil(len(per_rank[0]) / micro_batch)
    shares = []
    for mine in per_rank:
        share = [mine[first : first + micro_batch] for first in range(0, num_micro * micro_batch, micro_batch)]
        shares.append([part or [(ordered[0], 0.0)] for part in share])
    return shares
