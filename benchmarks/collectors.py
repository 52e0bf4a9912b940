"""Reference schedules for a set of episodes with known latencies: what any collector can reach, and what barriers cost.

An episode is a list of steps, a step a pair of seconds: the page's and the policy's. All figures are makespans in seconds
without any overhead, so a synchronous collector is given its best case.
"""

import heapq
from collections.abc import Iterable, Sequence
from itertools import islice

Step = tuple[float, float]
Episode = Sequence[Step]


def duration(episode: Episode) -> float:
    return sum(page + policy for page, policy in episode)


def list_schedule(episodes: Iterable[Episode], num_slots: int) -> float:
    """Every episode goes, in order, to the slot that is free first (Graham's list scheduling)."""
    free_at = [0.0] * num_slots
    for episode in episodes:
        heapq.heapreplace(free_at, free_at[0] + duration(episode))
    return max(free_at)


def step_synchronous(episodes: Iterable[Episode], num_slots: int) -> float:
    """Batches of `num_slots`; in each step all pages, then all answers are awaited: the usual vectorised environment."""
    total = 0.0
    for batch in _batches(episodes, num_slots):
        for number in range(max(map(len, batch))):
            steps = [episode[number] for episode in batch if number < len(episode)]
            total += max(page for page, _ in steps) + max(policy for _, policy in steps)
    return total


def episode_synchronous(episodes: Iterable[Episode], num_slots: int) -> float:
    """Batches of `num_slots` whose episodes run freely; the next batch waits for the longest."""
    return sum(max(map(duration, batch)) for batch in _batches(episodes, num_slots))


def _batches(episodes: Iterable[Episode], size: int) -> Iterable[list[Episode]]:
    rest = iter(episodes)
    while batch := list(islice(rest, size)):
        yield batch
