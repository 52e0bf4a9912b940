"""The quickstart's constants besides its configuration file; loads without torch."""

from dataclasses import dataclass

NUM_DEMONSTRATIONS = 700
NUM_HELD_OUT = 100
THOUGHT = "Click the button."
"""The sentence that every demonstration says."""
GRID = 10
"""Demonstrated coordinates are multiples of this, so that the last digit is soon learnt."""
WARM_START_LEARNING_RATE = 2e-3


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """When to look, and when to stop."""

    target_success: float = 0.26
    """On the kept-out demonstrations, one sampled answer each."""
    num_kept_out: int = 200
    updates_between: int = 3
    """Optimizer steps between two looks."""
    max_updates: int = 240
    """Then it goes on with what there is: pages with distractors take more than this model learns from few demonstrations."""
