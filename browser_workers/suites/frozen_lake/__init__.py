"""Frozen lakes: levels drawn from a seed, the page that plays them, and the best move on them."""

from browser_workers.suites.frozen_lake.suite import FrozenLakeSuite

__all__ = ["FrozenLakeSuite"]
