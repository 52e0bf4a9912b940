"""`miniwob:<page>?seed=<n>`: pages that draw their problem from the seed and reward it themselves."""

from collections.abc import Sequence
from urllib.parse import parse_qsl, urlencode

from browser_workers.browser import Opening
from browser_workers.site import SiteRequest
from browser_workers.suites import UnknownWebsite, probe_at, suite
from browser_workers.suites.miniwob.site import ORIGIN, MiniWobSite, installed_files, page_paths

NAME = "miniwob"
_INSTALL = "the MiniWoB++ pages are not installed: run `pip install miniwob==1.1.0`"
_QUIET_S = 0.15
_MOVING = b"jquery-ui.min.js"
"""Pages with its widgets open and close things by and by; all others are done when they have handled the input."""


@suite(NAME)
class MiniWobSuite:
    """With or without the package."""

    def __init__(self) -> None:
        files = installed_files()
        self._pages = page_paths(files)
        self._site = MiniWobSite(files)

    @property
    def pages(self) -> Sequence[str]:
        """Their names, sorted. Raises `UnknownWebsite` when the package is not installed."""
        if not self._pages:
            raise UnknownWebsite(_INSTALL)
        return tuple(self._pages)

    def resolve(self, page: str, query: str) -> Opening:
        """Parameters: seed (a whole number, 0), limit_s (seconds until the page ends with -1, none), and the page's own.

        Raises:
            UnknownWebsite: the package is not installed, it has no such page, or a parameter is wrong.
        """
        if page not in self.pages:
            raise UnknownWebsite(f"miniwob has no page {page!r}: write one such as click-test; docs/miniwob.md lists them")
        # A flight goes on in a frame, behind the load of the page itself.
        is_flight = page.startswith("flight.")
        moves = _MOVING in self._site.respond(SiteRequest(self._pages[page])).body
        url = f"{ORIGIN}{self._pages[page]}?{_checked(query)}"
        return Opening(
            url=url,
            probe=probe_at(url, "window.millrace()"),
            site=self._site,
            keeps_no_state=not is_flight,
            quiet_s=_QUIET_S if is_flight or moves else 0.0,
        )


def _checked(query: str) -> str:
    parameters = {"seed": "0", **dict(parse_qsl(query))}
    if not parameters["seed"].isdecimal():
        raise UnknownWebsite(
            f"seed is {parameters['seed']!r}: write a whole number of 0 or more, as in miniwob:click-test?seed=5"
        )
    limit_s = parameters.get("limit_s", "1")
    if not limit_s.isdecimal() or not 0 < int(limit_s) <= 86_400:
        raise UnknownWebsite(f"limit_s is {limit_s!r}: write a whole number of seconds from 1 to 86400")
    return urlencode(parameters)
