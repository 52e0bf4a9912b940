"""The shop as a task suite: `shop:<page>?<query>`, as in `shop:product/kestrel-kettle`; `shop:home` is the home page."""

from browser_workers.browser import Opening
from browser_workers.site import SiteRequest
from browser_workers.suites.shop.site import ORIGIN, ShopSite
from browser_workers.suites.suite import UnknownWebsite

NAME = "shop"
_HOME = "home"
_NOT_FOUND = 404
_QUIET_S = 0.05
"""Its pages load nothing behind their load event."""


class ShopSuite:
    def __init__(self) -> None:
        self._site = ShopSite()

    def resolve(self, page: str, query: str) -> Opening:
        path = "/" if page == _HOME else f"/{page}"
        if self._site.respond(SiteRequest(path, query)).status == _NOT_FOUND:
            raise UnknownWebsite(f"the shop has no page {page!r}: write one such as home, search, help or category/garden")
        return Opening(url=f"{ORIGIN}{path}?{query}" if query else f"{ORIGIN}{path}", site=self._site, quiet_s=_QUIET_S)
