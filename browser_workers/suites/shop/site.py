"""The shop as a `Site`: how each address is answered. It keeps nothing; what visitors do stays in their browsers."""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from urllib.parse import parse_qsl

from browser_workers.site import SiteRequest, SiteResponse
from browser_workers.suites.shop.catalogue import catalogue
from browser_workers.suites.shop.layout import page
from browser_workers.suites.shop.markup import element
from browser_workers.suites.shop.routes import document

ORIGIN = "http://shop.millrace.test"
"""Never looked up: whoever plays the site answers for it."""
SLOW_S = 2.5
"""Seconds that the page of the stores takes."""
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}


class ShopSite:
    """Satisfies `browser_workers.site.Site`.

    Three pages misbehave, always in the same way: `/stores` is slow, `/outlet` fails until it is tried again through its own
    link, `/printed-catalogue` breaks the connection off.
    """

    origin = ORIGIN

    def __init__(self) -> None:
        self._shop = catalogue()

    def respond(self, request: SiteRequest) -> SiteResponse:
        path = request.path.rstrip("/")
        if path.startswith("/static/"):
            return _static_files().get(path.removeprefix("/static/")) or self._missing()
        if path == "/printed-catalogue":
            return SiteResponse(breaks_off=True)
        if path == "/outlet" and dict(parse_qsl(request.query)).get("again") != "1":
            return self._fallen()
        found = document(self._shop, path, request.query)
        if found is None:
            return self._missing()
        return SiteResponse(found.encode(), after_s=SLOW_S if path == "/stores" else 0.0)

    def _fallen(self) -> SiteResponse:
        body = page(
            self._shop,
            "Something went wrong",
            element("h1", "Something went wrong"),
            element("p", "Error 500. The shelf with the outlet fell over; it usually stands again at once.", class_="lead"),
            element("a", "Try again", href="/outlet?again=1", class_="button"),
        )
        return SiteResponse(body.encode(), status=500)

    def _missing(self) -> SiteResponse:
        body = page(
            self._shop,
            "Page not found",
            element("h1", "Page not found"),
            element("p", "Error 404. The tide took this page. Try the search, or begin anew.", class_="lead"),
            element("a", "To the home page", href="/", class_="button"),
        )
        return SiteResponse(body.encode(), status=404)


@cache
def _static_files() -> Mapping[str, SiteResponse]:
    folder = resources.files("browser_workers.suites.shop") / "static"
    return {
        file.name: SiteResponse(file.read_bytes(), content_type=_TYPES[file.name.rpartition(".")[2]])
        for file in folder.iterdir()
    }
