"""Decides whether a group's rewards can be compared. Pure.

The trainer that leaves a group out and the feeder that admits another one in its place both go by this.
"""

from collections.abc import Sequence

_EQUAL = 1e-6


def lacks_variance(rewards: Sequence[float | None]) -> bool:
    """Whether a complete group teaches nothing: its rewards, those of episodes without a verdict (None) left out, are equal,
    or there are none."""
    given = [reward for reward in rewards if reward is not None]
    return not given or max(given) - min(given) <= _EQUAL
