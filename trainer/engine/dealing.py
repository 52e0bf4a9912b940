"""Deals one optimizer step's samples to ranks and their micro-batches. Pure."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from trainer.items import Item

T = TypeVar("T")
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
