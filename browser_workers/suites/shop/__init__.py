"""The demo shop: a small web shop with a help centre, its pages, and tasks over them with programmatic checks."""

from browser_workers.suites.shop.suite import ShopSuite

__all__ = ["ShopSuite"]
