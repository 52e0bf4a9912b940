"""Sokoban: rooms drawn from a seed, the page that plays them, and the shortest way to solve them."""

from browser_workers.suites.sokoban.suite import SokobanSuite

__all__ = ["SokobanSuite"]
