"""Sends metrics and sampled episodes of training to their places, one place per file.

`metrics.jsonl` in the run's folder is the truth; wandb and TensorBoard follow it line by line, each in a thread of its own
with a position that outlives the trainer. So whichever of them is slow, absent or broken, training never waits for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

EVALUATION = "eval/"
"""Prefix of every figure of a held-out round."""


@dataclass(frozen=True)
class Row:
    """The metrics of one version: those of its training, or those of its evaluation."""

    version: int
    metrics: Mapping[str, float]

    @property
    def evaluates(self) -> bool:
        return any(name.startswith(EVALUATION) for name in self.metrics)


@dataclass(frozen=True, kw_only=True)
class ShownStep:
    """One step of a sampled episode, for people."""

    action: str
    """In words."""
    response: str
    parsed: bool
    screenshot: bytes = b""
    """JPEG with the action drawn in; empty when the record has aged out."""


@dataclass(frozen=True, kw_only=True)
class ShownEpisode:
    """One sampled episode, for people. All its text may come from a web page: never trusted."""

    episode: str
    instruction: str
    website: str
    difficulty: int
    outcome: str
    verdict: str
    reward: float | None
    reasoning: str
    versions: tuple[int, ...]
    steps: tuple[ShownStep, ...]


class Backend(Protocol):
    """One place that metrics are reported to. Called from one thread; whatever it raises is logged, and tried again."""

    def log(self, row: Row) -> None: ...

    def show(self, version: int, episodes: Sequence[ShownEpisode]) -> None: ...

    def close(self) -> None: ...
