"""Defines how a sampler cuts its distribution off, as a value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Truncation:
    """How the sampler cut its distribution off, applied in the order min_p, top_k, top_p."""

    top_k: int = 0
    """0: not at all."""
    top_p: float = 1.0
    min_p: float = 0.0

    @property
    def active(self) -> bool:
        return self.top_k > 0 or self.top_p < 1.0 or self.min_p > 0.0
