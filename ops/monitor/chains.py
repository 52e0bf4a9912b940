"""Reads how far an episode's chain has come from its subjects alone: payloads with screenshots are never read. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

_BEHIND_EPISODE = 4
"""Tokens in front of an attempt: run, `ep`, shard, episode."""


@dataclass(frozen=True, slots=True)
class ChainState:
    attempt: int = 0
    """0: no browser worker has taken it."""
    num_observations: int = 0
    """Of this attempt."""
    num_answers: int = 0
    is_done: bool = False


def chain_state(subjects: Iterable[str]) -> ChainState:
    """Of the subjects of one episode."""
    attempt, is_done = 0, False
    counts: dict[tuple[int, str], int] = {}
    for subject in subjects:
        match subject.split(".")[_BEHIND_EPISODE:]:
            case ["done"]:
                is_done = True
            case [number, kind, _] if number.isdecimal():
                attempt = max(attempt, int(number))
                counts[int(number), kind] = counts.get((int(number), kind), 0) + 1
            case _:
                pass
    return ChainState(attempt, counts.get((attempt, "obs"), 0), counts.get((attempt, "act"), 0), is_done)
