"""The shop as a task suite: `shop:<page>?<query>`, as in `shop:product/kestrel-kettle`; `shop:home` is the home page.

Two words of the query are for the suite, and the pages never see them: `solution=<seed>.<number>` names a task whose solution
a demonstration follows; with `blocked=1` the shop takes the visitor for a machine, and shows nothing but that.
"""

from functools import lru_cache

from browser_workers.browser import Opening
from browser_workers.site import SiteRequest
from browser_workers.suites import UnknownWebsite, suite
from browser_workers.suites.shop.site import ORIGIN, ShopSite
from browser_workers.suites.shop.steps import Solution
from browser_workers.suites.shop.tasks.draw import shop_tasks
from browser_workers.suites.shop.wall import ShopWall

NAME = "shop"
SOLUTION = "solution"
BLOCKED = "blocked"
_HOME = "home"
_NOT_FOUND = 404
_QUIET_S = 0.05
"""Its pages load nothing behind their load event."""


@suite(NAME)
class ShopSuite:
    def __init__(self) -> None:
        self._site = ShopSite()
        self._wall = ShopWall()

    def resolve(self, page: str, query: str) -> Opening:
        """Raises `UnknownWebsite` when the shop has no such page, or a word for the suite is wrong."""
        path = "/" if page == _HOME else f"/{page}"
        query, seed_and_number = _taken(query, SOLUTION)
        query, blocked = _taken(query, BLOCKED)
        solution = None if seed_and_number is None else _solution(seed_and_number)
        if self._site.respond(SiteRequest(path, query)).status == _NOT_FOUND:
            raise UnknownWebsite(f"the shop has no page {page!r}: write one such as home, search, help or category/garden")
        url = f"{ORIGIN}{path}?{query}" if query else f"{ORIGIN}{path}"
        if blocked not in (None, "1"):
            raise UnknownWebsite(f"{BLOCKED}={blocked}: write {BLOCKED}=1, or leave it out")
        site = self._wall if blocked else self._site
        return Opening(url=url, site=site, quiet_s=_QUIET_S, solution=solution)


def _taken(query: str, name: str) -> tuple[str, str | None]:
    """The query without a word, and what it stood for."""
    parameters = query.split("&")
    values = [each.removeprefix(f"{name}=") for each in parameters if each.startswith(f"{name}=")]
    return "&".join(each for each in parameters if not each.startswith(f"{name}=")), values[0] if values else None


def _solution(named: str) -> Solution:
    seed, _, number = named.partition(".")
    if not (seed.isdecimal() and number.isdecimal() and int(number) < len(_tasks(int(seed)))):
        raise UnknownWebsite(f"{SOLUTION}={named}: write a seed and the number of one of its tasks, as in 0.12")
    return Solution(_tasks(int(seed))[int(number)].solution)


_tasks = lru_cache(maxsize=8)(shop_tasks)
