"""The task suites that a browser worker can open pages of."""

from browser_workers.suites import demo
from browser_workers.suites.miniwob import suite as miniwob
from browser_workers.suites.shop import suite as shop
from browser_workers.suites.suite import Suite
from ops.simulation import hostility


def task_suites() -> dict[str, Suite]:
    """By the name that a task's `website` begins with."""
    return {
        demo.NAME: demo.DemoSuite(),
        shop.NAME: shop.ShopSuite(),
        miniwob.NAME: miniwob.MiniWobSuite(),
        hostility.NAME: hostility.HostileSuite(),
    }
