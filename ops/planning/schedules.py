"""Reference schedules for a set of episodes with known latencies: what any collector can reach, and what barriers cost.

An episode is a list of steps, a step a pair of seconds: the page's and the policy's. All figures are seconds without any
overhead, so a synchronous collector is given its best case.
"""

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class Training:
    """What happens beside collecting, and how far that may be ahead of it."""

    batch: int
    """Episodes that one version is trained on: those that end first."""
    train_s: float
    pause_s: float
    """In which nobody acts, while a version is put in place."""
    ahead: int
    """Versions that an episode may be older than the one it is trained into; 0: collecting waits for every version."""
    enough: float = 1.0
    """Share of a batch after which a synchronous collector gives the rest up, `grace_s` later."""
    grace_s: float = 0.0


def published(episodes: Sequence[Episode], num_slots: int, training: Training) -> list[float]:
    """When each version is there, in a pool of slots that never waits for anything but the bound on staleness.

    Episodes are admitted in order. Those that are given up count as played: a synchronous iteration goes on without them.
    """
    now = active = 0.0  # what is running goes on in active time alone: it stands still while a version is put in place
    running: list[float] = []
    found: list[float] = []
    num_admitted = num_done = 0
    trained_at = grace_at = math.inf
    while len(found) < len(episodes) // training.batch:
        bound = min(len(episodes), (training.ahead + len(found) + 1) * training.batch)
        while len(running) < num_slots and num_admitted < bound:
            heapq.heappush(running, active + duration(episodes[num_admitted]))
            num_admitted += 1
        wanted = (len(found) + 1) * training.batch
        if trained_at == math.inf and num_done >= wanted:
            trained_at, grace_at = now + training.train_s, math.inf
        elif trained_at == math.inf and grace_at == math.inf and num_done >= wanted - (1 - training.enough) * training.batch:
            grace_at = now + training.grace_s
        done_at = now + running[0] - active if running else math.inf
        event = min(done_at, trained_at, grace_at)
        active += event - now
        now = event
        if event == trained_at:
            found.append(now)
            now += training.pause_s
            trained_at = math.inf
        elif event == done_at:
            heapq.heappop(running)
            num_done += 1
        else:
            num_done += len(running)
            running.clear()
            grace_at = math.inf
    return found


def _batches(episodes: Iterable[Episode], size: int) -> Iterable[list[Episode]]:
    rest = iter(episodes)
    while batch := list(islice(rest, size)):
        yield batch
