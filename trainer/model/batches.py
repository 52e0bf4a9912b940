"""Batches: a micro-batch's samples behind each other in one row, without padding."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
import torch

from trainer.items import Item, Targets
from trainer.model.packing import Packing
from trainer.model.pixel_scale import PixelScale
from trainer.samples import Grid
from trainer.token_losses import TokenTargets

Moved = TypeVar("Moved", "Batch", TokenTargets)


@dataclass(frozen=True, eq=False)
class Batch:
    """One micro-batch: B sequences of L tokens together, with N completion tokens in all."""

    packing: Packing
    """Of the B sequences."""
    tokens: torch.Tensor
    """int64, (1, L)."""
    positions: torch.Tensor
    """int64, (axes, 1, L)."""
    shapes: tuple[Grid, ...]
    """Of all screenshots."""
    frames: Packing
    """Of the screenshots' patches."""
    raw: torch.Tensor | None
    """uint8, (patches, values): the screenshots before normalisation."""
    scale: PixelScale
    """Of `raw`."""
    grids: torch.Tensor | None
    """int64, (screenshots, 3): `shapes`."""
    columns: torch.Tensor
    """int64, (N,): where the hidden state stands whose logits predict it: one before its own place."""
    labels: torch.Tensor
    """int64, (N,): the tokens themselves."""
    temperatures: torch.Tensor
    """float32, (N,)."""
    targets: TokenTargets

    @property
    def pixels(self) -> torch.Tensor | None:
        """float32, (patches, values), as the model's processor makes them."""
        return None if self.raw is None else self.scale.apply(self.raw)

    def to(self, device: torch.device) -> "Batch":
        if device.type == "cpu":
            return self
        return replace(_moved(self, device), targets=_moved(self.targets, device))


def collate(items: Sequence[Item], scale: PixelScale) -> Batch:
    """Joins samples into one micro-batch."""
    samples = [item.sample for item in items]
    lengths = [len(sample.tokens) for sample in samples]
    tokens = np.concatenate([sample.tokens for sample in samples])
    counts = [sample.num_completion for sample in samples]
    ends = np.cumsum(lengths)
    columns = np.concatenate([np.arange(end - count, end) for end, count in zip(ends, counts, strict=True)])
    screenshots = [screenshot for sample in samples for screenshot in sample.screenshots]
    shapes = tuple(screenshot.grid for screenshot in screenshots)
    joined = {
        each.name: torch.from_numpy(np.concatenate([getattr(item.targets, each.name) for item in items]))
        for each in fields(Targets)
    }
    sequences = torch.from_numpy(np.repeat(np.arange(len(samples)), counts))
    return Batch(
        packing=Packing(tuple(lengths)),
        tokens=torch.from_numpy(tokens.astype(np.int64))[None],
        positions=torch.from_numpy(np.concatenate([sample.positions for sample in samples], axis=1).astype(np.int64))[:, None],
        shapes=shapes,
        frames=Packing(tuple(rows * columns for frames, rows, columns in shapes for _ in range(frames))),
        raw=torch.from_numpy(np.concatenate([p.raw for p in screenshots])) if screenshots else None,
        scale=scale,
        grids=torch.tensor(shapes) if screenshots else None,
        columns=torch.from_numpy(columns - 1),
        labels=torch.from_numpy(tokens[columns].astype(np.int64)),
        temperatures=torch.from_numpy(np.repeat(np.array([s.temperature for s in samples], dtype=np.float32), counts)),
        targets=TokenTargets(**joined, sequences=sequences),
    )


def _moved(held: Moved, device: torch.device) -> Moved:
    tensors = {each.name: value for each in fields(held) if isinstance(value := getattr(held, each.name), torch.Tensor)}
    moved: dict[str, Any] = {name: value.pin_memory().to(device, non_blocking=True) for name, value in tensors.items()}
    return replace(held, **moved)
