"""When the warm start stops; apart from the training itself, so that it loads without torch."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """When to look, and when to stop."""

    target_success: float = 0.36
    """On the kept-out demonstrations, one sampled answer each."""
    num_kept_out: int = 200
    updates_between: int = 5
    """Optimizer steps between two looks."""
    max_updates: int = 600
