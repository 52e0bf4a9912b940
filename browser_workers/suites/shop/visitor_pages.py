"""The pages that show what a visitor has done, filled from the visitor's browser by their scripts: cart, checkout, account."""

import json
from collections.abc import Iterator
from urllib.parse import parse_qsl

from browser_workers.suites.shop.catalogue import Catalogue
from browser_workers.suites.shop.customers import Line, as_json, customers, line_as_json
from browser_workers.suites.shop.layout import breadcrumbs, page
from browser_workers.suites.shop.markup import Markup, element

CHECKOUT = {"address": "Address", "delivery": "Delivery", "payment": "Payment", "review": "Review", "thanks": "Done"}
ACCOUNT = {"orders": "Orders", "order": "Order", "addresses": "Addresses", "preferences": "Preferences"}
_MAX_QUANTITY = 99


def cart_page(catalogue: Catalogue, query: str) -> Markup:
    """`add=slug:colour:size:quantity,...` in the query fills the cart first."""
    offered = [line_as_json(line) for line in _offered(catalogue, dict(parse_qsl(query)).get("add", ""))]
    return page(
        catalogue,
        "Cart",
        breadcrumbs(here="Cart"),
        element("h1", "Cart"),
        element("div", id="cart"),
        _data("offered", offered),
        scripts=("cart",),
    )


def checkout_page(catalogue: Catalogue, step: str) -> Markup:
    steps = [element("li", name, aria_current="step" if key == step else None) for key, name in CHECKOUT.items()]
    return page(
        catalogue,
        f"Checkout: {CHECKOUT[step]}",
        element("h1", "Checkout"),
        element("ol", steps, class_="steps", aria_label="Steps of the checkout"),
        element("div", id="checkout", data_step=step),
        scripts=("forms", "checkout"),
    )


def login_page(catalogue: Catalogue) -> Markup:
    return page(
        catalogue,
        "Sign in",
        breadcrumbs(here="Sign in"),
        element("h1", "Your account"),
        element("div", id="account", data_view="login"),
        _data("customers", [as_json(each) for each in customers()]),
        scripts=("forms", "account"),
    )


def account_page(catalogue: Catalogue, view: str) -> Markup:
    """`view` is a key of ACCOUNT, or `account` for the overview."""
    title = ACCOUNT.get(view, "Your account")
    links = [
        element("li", element("a", name, href=f"/account/{key}", aria_current="page" if key == view else None))
        for key, name in ACCOUNT.items()
        if key != "order"
    ]
    places = () if view == "account" else (("Your account", "/account"),)
    menu = element("nav", element("ul", links), aria_label="Account", class_="menu")
    content = element("div", element("h1", title), element("div", id="account", data_view=view))
    return page(
        catalogue,
        title,
        breadcrumbs(*places, here=title),
        element("div", menu, content, class_="with-menu"),
        scripts=("forms", "account"),
    )


def _offered(catalogue: Catalogue, text: str) -> Iterator[Line]:
    for item in filter(None, text.split(",")):
        slug, colour, size, quantity = [*item.split(":"), "", "", ""][:4]
        product = catalogue.product(slug)
        if product is None or not quantity.isdecimal() or not 1 <= int(quantity) <= _MAX_QUANTITY:
            continue
        if colour in product.colours and size in (product.sizes or ("",)):
            yield Line(product, colour, size, int(quantity))


def _data(name: str, value: object) -> Markup:
    """Read by a script; `<` cannot end the element."""
    text = json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
    return element("script", Markup(text), type="application/json", id=name)
