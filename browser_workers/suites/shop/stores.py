"""The shop's own stores, and the page that lists them."""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

from browser_workers.suites.shop.catalogue import Catalogue
from browser_workers.suites.shop.layout import breadcrumbs, page
from browser_workers.suites.shop.markup import Markup, element


@dataclass(frozen=True, slots=True)
class Store:
    city: str
    street: str
    week: str
    """Opening hours from Monday to Friday."""
    saturday: str
    telephone: str


@cache
def stores() -> tuple[Store, ...]:
    text = (resources.files("browser_workers.suites.shop") / "data" / "stores.json").read_text(encoding="utf-8")
    return tuple(Store(**each) for each in json.loads(text))


def stores_page(catalogue: Catalogue) -> Markup:
    head = element("tr", [element("th", name, scope="col") for name in ("Store", "Monday to Friday", "Saturday", "Telephone")])
    rows = [
        element(
            "tr",
            element("th", each.city, element("span", each.street, class_="fine"), scope="row"),
            [element("td", text) for text in (each.week, each.saturday, each.telephone)],
        )
        for each in stores()
    ]
    return page(
        catalogue,
        "Stores",
        breadcrumbs(here="Stores"),
        element("h1", "Stores"),
        element("p", "Come by and pick things up. On Sundays we are in bed.", class_="lead"),
        element("table", element("thead", head), element("tbody", rows), class_="lines"),
    )
