"""The frame of every page: head, header with search and navigation, footer."""

from collections.abc import Sequence

from browser_workers.suites.shop.catalogue import Catalogue
from browser_workers.suites.shop.markup import Child, Markup, element, joined

NAME = "Tern & Thistle"
_FOOTER = {
    "Shop": (
        ("All products", "/search"),
        ("Outlet", "/outlet"),
        ("Printed catalogue", "/printed-catalogue"),
        ("Stores", "/stores"),
    ),
    "Help": (
        ("Help centre", "/help"),
        ("Delivery", "/help/delivery"),
        ("Returns", "/help/returns"),
        ("Contact", "/help/contact"),
    ),
    "Your account": (("Sign in", "/login"), ("Orders", "/account/orders"), ("Preferences", "/account/preferences")),
}


def page(
    catalogue: Catalogue, title: str, *body: Child, words: str = "", scripts: Sequence[str] = (), here: str = ""
) -> Markup:
    """A whole document.

    Args:
        words: what stands in the search field.
        scripts: names of the page's own scripts among the static files, in order.
        here: slug of the category that the navigation marks.
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width"),
        element("title", f"{title} · {NAME}"),
        element("link", rel="stylesheet", href="/static/shop.css"),
        element("link", rel="icon", href="data:,"),
        element("script", src="/static/shop.js", defer=True),
        [element("script", src=f"/static/{name}.js", defer=True) for name in scripts],
    )
    content = element("main", *body, id="content", tabindex="-1")
    skip = element("a", "Skip to content", href="#content", class_="skip")
    document = element("html", head, element("body", skip, _header(catalogue, words, here), content, _footer()), lang="en")
    return Markup(f"<!doctype html>{document}")


def breadcrumbs(*places: tuple[str, str], here: str) -> Markup:
    links = [element("li", element("a", name, href=path)) for name, path in (("Home", "/"), *places)]
    last = element("li", element("span", here, aria_current="page"))
    return element("nav", element("ol", links, last), aria_label="Breadcrumb", class_="crumbs")


def options(names: dict[str, str], chosen: str) -> Markup:
    """`<option>`s from values to labels."""
    return joined(element("option", label, value=value, selected=value == chosen) for value, label in names.items())


def _header(catalogue: Catalogue, words: str, here: str) -> Markup:
    field = element("input", type="search", name="q", value=words, aria_label="Search the shop", placeholder="Search the shop")
    search = element(
        "form", field, element("button", "Search", type="submit"), action="/search", role="search", class_="search"
    )
    actions = element(
        "nav",
        element("a", "Help", href="/help"),
        element("a", "Sign in", href="/login", id="account-link"),
        element("a", "Cart ", element("span", "0", id="cart-count", class_="badge"), href="/cart", id="cart-link"),
        aria_label="Your shop",
        class_="actions",
    )
    logo = element("a", element("span", "T&T", class_="mark", aria_hidden="true"), NAME, href="/", class_="logo")
    links = [
        element("a", each.name, href=f"/category/{each.slug}", aria_current="page" if each.slug == here else None)
        for each in catalogue.categories
    ]
    outlet = element("a", "Outlet", href="/outlet", class_="sale", aria_current="page" if here == "outlet" else None)
    categories = element("nav", element("div", links, outlet, class_="wide"), aria_label="Categories", class_="categories")
    return element("header", element("div", logo, search, actions, class_="wide top"), categories, class_="site")


def _footer() -> Markup:
    columns = [
        element(
            "section", element("h2", title), element("ul", [element("li", element("a", name, href=to)) for name, to in links])
        )
        for title, links in _FOOTER.items()
    ]
    field = element("input", id="footer-email", type="email", name="email", required=True)
    newsletter = element(
        "form",
        element("h2", "News, twice a month"),
        element("label", "Your email", for_="footer-email"),
        element("div", field, element("button", "Subscribe", type="submit"), class_="joined"),
        element("p", role="status", class_="status"),
        class_="newsletter",
        data_newsletter=True,
    )
    note = element("p", f"{NAME} is a demonstration. Nothing is sold here, and nobody delivers.", class_="wide fine")
    return element("footer", element("div", columns, newsletter, class_="wide columns"), note, class_="site")
