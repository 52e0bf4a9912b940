"""The shop as a `Site`: which page answers which address. It keeps nothing; what visitors do stays in their browsers."""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from urllib.parse import parse_qsl

from browser_workers.site import SiteRequest, SiteResponse
from browser_workers.suites.shop.articles import article_page, articles, help_page
from browser_workers.suites.shop.catalogue import catalogue
from browser_workers.suites.shop.layout import page
from browser_workers.suites.shop.listing import listing, read_filters
from browser_workers.suites.shop.markup import element
from browser_workers.suites.shop.storefront import home, listing_page, outlet_page, product_page
from browser_workers.suites.shop.stores import stores_page
from browser_workers.suites.shop.visitor_pages import ACCOUNT, CHECKOUT, account_page, cart_page, checkout_page, login_page

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
        place, _, name = request.path.strip("/").partition("/")
        if place == "static":
            return _static_files().get(name, self._missing())
        if place == "printed-catalogue":
            return SiteResponse(breaks_off=True)
        if place == "stores" and not name:
            return _html(stores_page(self._shop), after_s=SLOW_S)
        if place == "outlet" and not name:
            return self._outlet(request.query)
        document = self._document(place, name, request.query)
        return self._missing() if document is None else _html(document)

    def _document(self, place: str, name: str, query: str) -> str | None:
        shop = self._shop
        match place, name:
            case "", "":
                return home(shop)
            case "search", "":
                filters = read_filters(query)
                return listing_page(shop, filters, listing(shop.products, filters))
            case "category", name if shop.category(name):
                filters = read_filters(query, name)
                return listing_page(shop, filters, listing(shop.products, filters))
            case "product", name if product := shop.product(name):
                return product_page(shop, product)
            case "help", "":
                return help_page(shop, dict(parse_qsl(query)).get("q", ""))
            case "help", name if article := articles().get(name):
                return article_page(shop, article)
            case _:
                return self._visitor_document(place, name, query)

    def _visitor_document(self, place: str, name: str, query: str) -> str | None:
        shop = self._shop
        match place, name:
            case "cart", "":
                return cart_page(shop, query)
            case "checkout", name if name in CHECKOUT:
                return checkout_page(shop, name)
            case "login", "":
                return login_page(shop)
            case "account", "":
                return account_page(shop, "account")
            case "account", name if name in ACCOUNT:
                return account_page(shop, name)
            case "start-over", "":
                text = element("p", "Nothing of you is left here. ", element("a", "To the shop", href="/"), class_="lead")
                return page(shop, "Start over", element("h1", "Start over"), text, scripts=("start-over",))
            case _:
                return None

    def _outlet(self, query: str) -> SiteResponse:
        if dict(parse_qsl(query)).get("again") == "1":
            return _html(outlet_page(self._shop))
        body = page(
            self._shop,
            "Something went wrong",
            element("h1", "Something went wrong"),
            element("p", "Error 500. The shelf with the outlet fell over; it usually stands again at once.", class_="lead"),
            element("a", "Try again", href="/outlet?again=1", class_="button"),
        )
        return _html(body, status=500)

    def _missing(self) -> SiteResponse:
        body = page(
            self._shop,
            "Page not found",
            element("h1", "Page not found"),
            element("p", "Error 404. The tide took this page. Try the search, or begin anew.", class_="lead"),
            element("a", "To the home page", href="/", class_="button"),
        )
        return _html(body, status=404)


def _html(document: str, *, status: int = 200, after_s: float = 0.0) -> SiteResponse:
    return SiteResponse(document.encode(), status=status, after_s=after_s)


@cache
def _static_files() -> Mapping[str, SiteResponse]:
    folder = resources.files("browser_workers.suites.shop") / "static"
    return {
        file.name: SiteResponse(file.read_bytes(), content_type=_TYPES[file.name.rpartition(".")[2]])
        for file in folder.iterdir()
    }
