"""Routes addresses of the shop to documents. Pure."""

from collections.abc import Callable
from urllib.parse import parse_qsl

from browser_workers.suites.shop.articles import article_page, articles, help_page
from browser_workers.suites.shop.catalogue import Catalogue
from browser_workers.suites.shop.layout import page
from browser_workers.suites.shop.listing import listing, read_filters
from browser_workers.suites.shop.markup import element
from browser_workers.suites.shop.storefront import home, listing_page, outlet_page, product_page
from browser_workers.suites.shop.stores import stores_page
from browser_workers.suites.shop.visitor_pages import ACCOUNT, CHECKOUT, account_page, cart_page, checkout_page, login_page

Document = Callable[[Catalogue, str, str], str | None]
"""From the shop, what stands behind the first part of the path, and the query; None: there is no such page."""


def document(shop: Catalogue, path: str, query: str) -> str | None:
    """The HTML of an address; None: there is no such page."""
    place, _, name = path.strip("/").partition("/")
    if place in _SINGLE:
        return None if name else _SINGLE[place](shop, query)
    return _NAMED[place](shop, name, query) if place in _NAMED else None


def _search(shop: Catalogue, query: str) -> str:
    filters = read_filters(query)
    return listing_page(shop, filters, listing(shop.products, filters))


def _category(shop: Catalogue, name: str, query: str) -> str | None:
    filters = read_filters(query, name)
    return listing_page(shop, filters, listing(shop.products, filters)) if shop.category(name) else None


def _product(shop: Catalogue, name: str, _: str) -> str | None:
    product = shop.product(name)
    return product_page(shop, product) if product else None


def _help(shop: Catalogue, name: str, query: str) -> str | None:
    if not name:
        return help_page(shop, dict(parse_qsl(query)).get("q", ""))
    article = articles().get(name)
    return article_page(shop, article) if article else None


def _checkout(shop: Catalogue, name: str, _: str) -> str | None:
    return checkout_page(shop, name) if name in CHECKOUT else None


def _account(shop: Catalogue, name: str, _: str) -> str | None:
    return account_page(shop, name or "account") if not name or name in ACCOUNT else None


def _start_over(shop: Catalogue, _: str) -> str:
    text = element("p", "Nothing of you is left here. ", element("a", "To the shop", href="/"), class_="lead")
    return page(shop, "Start over", element("h1", "Start over"), text, scripts=("start-over",))


_SINGLE: dict[str, Callable[[Catalogue, str], str]] = {
    "": lambda shop, _: home(shop),
    "search": _search,
    "outlet": lambda shop, _: outlet_page(shop),
    "stores": lambda shop, _: stores_page(shop),
    "cart": cart_page,
    "login": lambda shop, _: login_page(shop),
    "start-over": _start_over,
}
_NAMED: dict[str, Document] = {
    "category": _category,
    "product": _product,
    "help": _help,
    "checkout": _checkout,
    "account": _account,
}
