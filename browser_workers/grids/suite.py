"""What the suites of grids share: a website with a seed stands for one level, whose document is made when it is asked for."""

import json
from collections.abc import Callable
from functools import lru_cache
from importlib import resources

from browser_workers.browser import Opening
from browser_workers.grids.level import Level, instruction
from browser_workers.grids.oracle import GridOracle
from browser_workers.grids.query import Query
from browser_workers.site import NOT_FOUND, SiteRequest, SiteResponse
from browser_workers.suites import UnknownWebsite, probe_at

_SCRIPTS = b"<!-- level, grid.css, grid.js -->"
_LEVELS_KEPT = 256


class GridSuite:
    """`<name>:<page>?seed=<n>`, of one page."""

    def __init__(self, name: str, page: str, read: Callable[[Query], Level]) -> None:
        """`read` draws a level, and raises `UnknownWebsite` where a parameter is wrong."""
        self.name, self.page = name, page
        self._read = read
        self._site = GridSite(self)
        self._drawn = lru_cache(maxsize=_LEVELS_KEPT)(self._draw)

    def level(self, query: str) -> Level:
        """The same one for the same query. Raises `UnknownWebsite`."""
        return self._drawn(query)

    def resolve(self, page: str, query: str) -> Opening:
        if page != self.page:
            raise UnknownWebsite(f"{self.name} has no page {page!r}: write {self.name}:{self.page}?seed=0")
        level = self.level(query)
        url = f"{self._site.origin}/{page}?{self._query(query).text}"
        return Opening(
            url=url,
            probe=probe_at(url, "window.millrace"),
            site=self._site,
            keeps_no_state=True,
            quiet_s=0.0,
            feedback=False,
            solution=GridOracle(level),
        )

    def _draw(self, text: str) -> Level:
        query = self._query(text)
        level = self._read(query)
        query.end()
        return level

    def _query(self, text: str) -> Query:
        return Query(f"{self.name}:{self.page}", text)


class GridSite:
    """Satisfies `browser_workers.site.Site`: a document with the level that its address names."""

    def __init__(self, suite: GridSuite) -> None:
        self.origin = f"http://{suite.name.replace('_', '-')}.millrace.test"
        self._suite = suite
        page = resources.files("browser_workers.suites") / suite.name / f"{suite.page}.html"
        folder = resources.files("browser_workers.grids")
        style, script = ((folder / file).read_bytes() for file in ("grid.css", "grid.js"))
        head, _, self._tail = page.read_bytes().partition(_SCRIPTS)
        self._head = head + b"<style>" + style + b"</style>\n<script>" + script + b"</script>\n"

    def respond(self, request: SiteRequest) -> SiteResponse:
        try:
            level = self._suite.level(request.query)
        except UnknownWebsite:
            return NOT_FOUND
        if request.path != f"/{self._suite.page}":
            return NOT_FOUND
        return SiteResponse(self._head + _script(level) + self._tail)


def _script(level: Level) -> bytes:
    how = level.playing
    playing = {
        "controls": how.controls,
        "text": how.text,
        "stepReward": how.step_reward,
        "idleReward": how.idle_reward,
        "utterance": instruction(level),
    }
    return f"<script>const LEVEL = {json.dumps({**playing, **level.facts()})};</script>\n".encode()
