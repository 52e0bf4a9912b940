"""Tasks over a family's pages."""

from collections.abc import Mapping, Sequence

from browser_workers.browser import Browser
from browser_workers.grids.suite import GridSuite
from browser_workers.grids.tasks import grid_tasks
from browser_workers.suites.demo import demo_tasks
from browser_workers.suites.frozen_lake import FrozenLakeSuite
from browser_workers.suites.miniwob.suite import MiniWobSuite
from browser_workers.suites.miniwob.tasks import miniwob_tasks
from browser_workers.suites.sokoban import SokobanSuite
from ops.quickstart.recipe import Family

Task = Mapping[str, object]


async def family_tasks(
    browser: Browser, family: Family, pages: Sequence[str], seeds: Sequence[int], num_each: int, *, first_id: int = 0
) -> list[Task]:
    """So many of every page, of the first seeds that will do, page by page, numbered from `first_id`.

    Raises `UnknownWebsite`.
    """
    match family.suite:
        case "demo":
            drawn: list[Task] = []
            for page in pages:
                first = first_id + len(drawn)
                drawn += await demo_tasks(browser, page, seeds[:num_each], parameters=family.parameters, first_id=first)
            return drawn
        case "miniwob":
            return await miniwob_tasks(browser, MiniWobSuite(), pages, seeds, num_each=num_each, first_id=first_id)
        case "frozen_lake":
            return _grid_tasks(FrozenLakeSuite(), family, pages, seeds[:num_each], first_id)
        case "sokoban":
            return _grid_tasks(SokobanSuite(), family, pages, seeds[:num_each], first_id)


def _grid_tasks(suite: GridSuite, family: Family, pages: Sequence[str], seeds: Sequence[int], first_id: int) -> list[Task]:
    """A page of grids is a size, as in `4x4`."""
    sizes = [int(page.partition("x")[0]) for page in pages]
    return grid_tasks(suite, sizes, seeds, family.parameters, first_id=first_id)
