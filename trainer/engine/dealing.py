"""Deals one optimizer step's samples to ranks and their micro-batches. Pure."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from trainer.items import Item

T = TypeVar("T")
Share = list[list[Item]]
"""One rank's micro-batches of one optimizer step."""


def deal(
    items: Sequence[Item],
    *,
    num_ranks: int,
    micro_batch: int,
    max_tokens: int = 0,
    idle: Item,
    reaches_all: bool = False,
) -> list[Share]:
    """Deals one optimizer step's samples to ranks, so that all have nearly as many tokens and equally many micro-batches.

    A micro-batch holds at most `micro_batch` samples and, unless that is 0, `max_tokens` tokens; a longer sample stands alone.
    The longest sample left goes to the rank with the fewest tokens, so no two ranks differ by more than the longest sample.
    Ranks must do equally many backward passes through the same parts of the model. So places that stay empty are taken by
    `idle`, whose screenshot is the smallest and whose weights are 0; so is, beyond the limits, one more place in every
    micro-batch that shows no screenshot. Where none of the step's samples shows one, the shortest stands for `idle`.

    `reaches_all`: every micro-batch shows one, on one rank too, and where no sample does. For ZeRO-3 of DeepSpeed, which keeps
    the gradients of a part that is not reached from the step before, and trains on them again.

    Example: samples of 9, 8, 7, 6, 5 tokens, two ranks, micro-batches of two: [[9, 6], [5]] and [[8, 7], [idle]].
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
    if not reaches_all and not _shows(items):
        return [share + [[ordered[-1].idle]] * (num_micro - len(share)) for share in shares]
    filled = [share + [[idle]] * (num_micro - len(share)) for share in shares]
    alone = num_ranks == 1 and not reaches_all
    return [[part if alone or _shows(part) else [*part, idle] for part in share] for share in filled]


def _shows(items: Iterable[Item]) -> bool:
    return any(item.sample.screenshots for item in items)


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
