"""Batches: a micro-batch's samples behind each other in one row, without padding."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import torch

from trainer.episodes.sample_builder import PixelScale
from trainer.items import Item, Targets
from trainer.model.packing import Packing

T = TypeVar("T")
Grid = tuple[int, int, int]
"""A picture's frames, rows and columns, in patches."""


@dataclass(frozen=True, eq=False)
class Batch:
    """One micro-batch: B sequences of L tokens together, with N completion tokens in all."""

    packing: Packing
    """Of the B sequences."""
    tokens: torch.Tensor
    """int64, (1, L)."""
    positions: torch.Tensor
    """int64, (3, 1, L)."""
    shapes: tuple[Grid, ...]
    """Of all pictures."""
    frames: Packing
    """Of the pictures' patches."""
    raw: torch.Tensor | None
    """uint8, (patches, values): the pictures before normalisation."""
    scale: PixelScale
    """Of `raw`."""
    grids: torch.Tensor | None
    """int64, (pictures, 3): `shapes`."""
    sequences: torch.Tensor
    """int64, (N,): the sample of each completion token, 0 to B - 1."""
    columns: torch.Tensor
    """int64, (N,): where the hidden state stands whose logits predict it: one before its own place."""
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
    def pixels(self) -> torch.Tensor | None:
        """float32, (patches, values), as the model's processor makes them."""
        return None if self.raw is None else self.scale.apply(self.raw)

    @property
    def trained(self) -> torch.Tensor:
        """float32, (N,): 1 where a token is trained on."""
        return (self.weights != 0).float()

    def to(self, device: torch.device) -> "Batch":
        if device.type == "cpu":
            return self
        held = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: dict[str, Any] = {
            name: value.pin_memory().to(device, non_blocking=True) if isinstance(value, torch.Tensor) else value
            for name, value in held.items()
        }
        return Batch(**moved)


def collate(items: Sequence[Item], scale: PixelScale) -> Batch:
    """Joins samples into one micro-batch."""
    samples = [item.sample for item in items]
    lengths = [len(sample.tokens) for sample in samples]
    tokens = np.concatenate([sample.tokens for sample in samples])
    counts = [sample.num_completion for sample in samples]
    ends = np.cumsum(lengths)
    columns = np.concatenate([np.arange(end - count, end) for end, count in zip(ends, counts, strict=True)])
    pictures = [picture for sample in samples for picture in sample.pictures]
    shapes = tuple(picture.grid for picture in pictures)
    joined = {
        field.name: torch.from_numpy(np.concatenate([getattr(item.targets, field.name) for item in items]))
        for field in fields(Targets)
    }
    return Batch(
        packing=Packing(tuple(lengths)),
        tokens=torch.from_numpy(tokens.astype(np.int64))[None],
        positions=torch.from_numpy(np.concatenate([sample.positions for sample in samples], axis=1).astype(np.int64))[:, None],
        shapes=shapes,
        frames=Packing(tuple(rows * columns for frames, rows, columns in shapes for _ in range(frames))),
        raw=torch.from_numpy(np.concatenate([p.raw for p in pictures])) if pictures else None,
        scale=scale,
        grids=torch.tensor(shapes) if pictures else None,
        sequences=torch.from_numpy(np.repeat(np.arange(len(samples)), counts)),
        columns=torch.from_numpy(columns - 1),
        labels=torch.from_numpy(tokens[columns].astype(np.int64)),
        temperatures=torch.from_numpy(np.repeat(np.array([s.temperature for s in samples], dtype=np.float32), counts)),
        **joined,
    )


Share = list[list[Item]]
"""One rank's micro-batches of one optimizer step."""


def deal(items: Sequence[Item], *, num_ranks: int, micro_batch: int, max_tokens: int = 0) -> list[Share]:
    """Deals one optimizer step's samples to ranks, so that all have nearly as many tokens and equally many micro-batches.

    A micro-batch holds at most `micro_batch` samples and, unless that is 0, `max_tokens` tokens; a longer sample stands alone.
    The longest sample left goes to the rank with the fewest tokens, so no two ranks differ by more than the longest sample.
    Ranks must do equally many backward passes, so places that stay empty repeat the shortest sample with weight 0.

    Example: samples of 9, 8, 7, 6, 5 tokens, two ranks, micro-batches of two: [[9, 6], [5]] and [[8, 7], [5 with weight 0]].
    """
    ordered = sorted(items, key=lambda item: len(item.sample.tokens), reverse=True)
    mine: list[list[Item]] = [[] for _ in range(num_ranks)]
    loads = [(0, rank) for rank in range(num_ranks)]
    for item in ordered:
        load, rank = heapq.heappop(loads)
        mine[rank].append(item)
        heapq.heappush(loads, (load + len(item.sample.tokens), rank))
    shares = [
        list(micro_batches(own, lambda item: len(item.sample.tokens), size=micro_batch, max_tokens=max_tokens)) for own in mine
    ]
    num_micro = max(len(share) for share in shares)
    return [share + [[ordered[-1].idle]] * (num_micro - len(share)) for share in shares]


def micro_batches(things: Sequence[T], length: Callable[[T], int], *, size: int, max_tokens: int) -> Iterator[list[T]]:
    """Cuts a sequence into parts of at most `size` members and `max_tokens` tokens (0: any number); in order."""
    part: list[T] = []
    tokens = 0
    for thing in things:
        more = length(thing)
        if part and (len(part) == size or 0 < max_tokens < tokens + more):
            yield part
            part, tokens = [], 0
        part.append(thing)
        tokens += more
    if part:
        yield part
