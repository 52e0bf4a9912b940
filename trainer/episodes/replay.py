"""The replay buffer of filtered behaviour cloning: steps of the last iterations' successful episodes, newer ones likelier,
and those of seldom solved subdomains where that is asked for.

Holds references only, so that it fits into a checkpoint. What is drawn is a function of (seed, iteration) and the content.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec
import numpy as np

from schemas.algorithm_config import AlgorithmConfig
from schemas.messages import RecordRef


class ReplayEntry(msgspec.Struct, frozen=True, array_like=True):
    """One step of a successful episode."""

    iteration: int
    step: RecordRef
    """The answer; it names its screenshots."""
    subdomain: str = ""
    """Of its task."""


class Replay:
    """Entries in the order in which they came."""

    def __init__(self, config: AlgorithmConfig, entries: Iterable[ReplayEntry] = (), *, lasting: bool = False) -> None:
        """`lasting`: nothing is forgotten, and a step that comes again stays where it is."""
        self._config = config
        self._entries = list(entries)
        self._lasting = lasting

    @property
    def entries(self) -> tuple[ReplayEntry, ...]:
        return tuple(self._entries)

    def add(self, iteration: int, steps: Iterable[tuple[RecordRef, str]]) -> None:
        """Takes an iteration's steps in, each with the subdomain of its task, and forgets what is older than the last
        `replay_iterations`, and the oldest beyond `replay_capacity`.

        A step that comes again, in a further pass over stored episodes, counts as new and never twice.
        """
        fresh = list(steps)
        if self._lasting:
            known = frozenset(entry.step for entry in self._entries)
            self._entries.extend(ReplayEntry(iteration, *entry) for entry in fresh if entry[0] not in known)
            return
        again = frozenset(step for step, _ in fresh)
        oldest = iteration - self._config.replay_iterations + 1
        self._entries = [entry for entry in self._entries if entry.iteration >= oldest and entry.step not in again]
        self._entries.extend(ReplayEntry(iteration, step, subdomain) for step, subdomain in fresh)
        if self._config.replay_capacity:
            self._entries = self._entries[-self._config.replay_capacity :]

    def draw(self, seed: int, iteration: int) -> list[RecordRef]:
        """Draws without replacement, an entry of iteration i, whose subdomain has n, with the weight
        (i + 1) ** recency_bias_power * n ** -replay_balance; all when few.

        Sampled by the largest of log(u) / weight (Efraimidis and Spirakis), which is drawing one after another.
        """
        size = self._config.positive_samples_to_train
        if len(self._entries) <= size:
            return [entry.step for entry in self._entries]
        generator = np.random.default_rng((seed, iteration))
        iterations = np.array([entry.iteration for entry in self._entries], dtype=np.float64)
        stored = Counter(entry.subdomain for entry in self._entries)
        alike = np.array([stored[entry.subdomain] for entry in self._entries], dtype=np.float64)
        weights = (iterations + 1.0) ** self._config.recency_bias_power * alike**-self._config.replay_balance
        keys = np.log(generator.random(len(self._entries))) / weights
        chosen = np.sort(np.argsort(keys)[-size:])
        return [self._entries[index].step for index in chosen]
