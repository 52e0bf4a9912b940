"""MiniWoB++: the pages of the `miniwob` package, played one problem at a time."""

from browser_workers.suites.miniwob.suite import MiniWobSuite

__all__ = ["MiniWobSuite"]
