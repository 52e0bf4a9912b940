"""The shop as a task suite: `shop:<page>?<query>`, as in `shop:product/kestrel-kettle`; `shop:home` is the home page.

`solution=<seed>.<number>` in the query names a task whose solution a demonstration follows; the page never sees it.
"""

from functools import lru_cache

from browser_workers.browser import Opening
from browser_workers.site import SiteRequest
from browser_workers.suites.shop.site import ORIGIN, ShopSite
from browser_workers.suites.shop.steps import Solution
from browser_workers.suites.shop.tasks.draw import shop_tasks
from browser_workers.suites.suite import UnknownWebsite

NAME = "shop"
SOLUTION = "solution"
_HOME = "home"
_NOT_FOUND = 404
_QUIET_S = 0.05
"""Its pages load nothing behind their load event."""


class ShopSuite:
    def __init__(self) -> None:
        self._site = ShopSite()

    def resolve(self, page: str, query: str) -> Opening:
        """Raises `UnknownWebsite` when the shop has no such page, or no such solution."""
        path = "/" if page == _HOME else f"/{page}"
        query, solution = _without_solution(query)
        if self._site.respond(SiteRequest(path, query)).status == _NOT_FOUND:
            raise UnknownWebsite(f"the shop has no page {page!r}: write one such as home, search, help or category/garden")
        url = f"{ORIGIN}{path}?{query}" if query else f"{ORIGIN}{path}"
        return Opening(url=url, site=self._site, quiet_s=_QUIET_S, solution=solution)


def _without_solution(query: str) -> tuple[str, Solution | None]:
    parameters = query.split("&")
    named = [each for each in parameters if each.startswith(f"{SOLUTION}=")]
    if not named:
        return query, None
    seed, _, number = named[0].removeprefix(f"{SOLUTION}=").partition(".")
    if not (seed.isdecimal() and number.isdecimal() and int(number) < len(_tasks(int(seed)))):
        raise UnknownWebsite(f"{named[0]}: write a seed and the number of one of its tasks, as in 0.12")
    rest = "&".join(each for each in parameters if each not in named)
    return rest, Solution(_tasks(int(seed))[int(number)].solution)


_tasks = lru_cache(maxsize=8)(shop_tasks)
