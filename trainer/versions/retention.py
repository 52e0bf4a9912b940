"""Decides which checkpoints stay on disk."""

from collections.abc import Collection
from dataclasses import dataclass

from schemas.trainer_config import TrainerConfig

_LEAST = 2
"""Policies may still be loading the last but one."""


@dataclass(frozen=True, slots=True)
class Retention:
    """The newest stay, every n-th for good, and those that training may return to."""

    keep_newest: int
    keep_every: int = 0
    """0: none for good."""
    kept: Collection[int] = ()
    """Versions that are named."""

    @classmethod
    def of(cls, config: TrainerConfig, kept: Collection[int] = ()) -> "Retention":
        return cls(config.keep_checkpoints, config.keep_every, kept)

    def lets_go(self, version: int, *, newest: int) -> bool:
        """Whether a version is to be deleted once `newest` is published."""
        if version > newest - max(_LEAST, self.keep_newest) or version in self.kept:
            return False
        return not (self.keep_every and version % self.keep_every == 0)
