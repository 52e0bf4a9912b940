"""Defines a key that has no effect beside certain others."""

from collections.abc import Callable
from dataclasses import dataclass

from schemas.config import Config


@dataclass(frozen=True, slots=True)
class Idle:
    keys: tuple[str, ...]
    """Keys or groups."""
    when: Callable[[Config], bool]
    why: str
