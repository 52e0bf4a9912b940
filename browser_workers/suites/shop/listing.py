"""Applies filters, order and page of a listing, as its address says, to the catalogue. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlencode

from browser_workers.suites.shop.catalogue import Product

PAGE_SIZE = 9
ORDERS = {
    "featured": "Featured",
    "price-low": "Price: low to high",
    "price-high": "Price: high to low",
    "rating": "Best rated",
    "name": "Name: A to Z",
}


@dataclass(frozen=True, slots=True)
class Filters:
    """As an address names them; empty and 0 leave everything in."""

    words: str = ""
    category: str = ""
    maker: str = ""
    colour: str = ""
    max_price: int = 0
    """In whole euros."""
    min_rating: float = 0.0
    in_stock: bool = False
    order: str = "featured"
    page: int = 1

    def query(self, *, page: int | None = None) -> str:
        """The address's query for this listing, without what is left at its default and without the category."""
        shown = replace(self, page=self.page if page is None else page)
        fields = {
            "q": shown.words,
            "maker": shown.maker,
            "colour": shown.colour,
            "max": shown.max_price or "",
            "rating": f"{shown.min_rating:g}" if shown.min_rating else "",
            "stock": "1" if shown.in_stock else "",
            "sort": shown.order if shown.order != "featured" else "",
            "page": shown.page if shown.page > 1 else "",
        }
        return urlencode({name: value for name, value in fields.items() if value != ""})


@dataclass(frozen=True, slots=True)
class Listing:
    products: tuple[Product, ...]
    """Of this page."""
    num_found: int
    page: int
    num_pages: int


def read_filters(query: str, category: str = "") -> Filters:
    """What cannot be understood is left out, as shops do."""
    fields = dict(parse_qsl(query))
    order = fields.get("sort", "")
    return Filters(
        words=fields.get("q", "").strip(),
        category=category,
        maker=fields.get("maker", ""),
        colour=fields.get("colour", ""),
        max_price=int(_number(fields.get("max", ""))),
        min_rating=_number(fields.get("rating", "")),
        in_stock=fields.get("stock") == "1",
        order=order if order in ORDERS else "featured",
        page=max(1, int(_number(fields.get("page", "")))),
    )


def found(products: Sequence[Product], filters: Filters) -> tuple[Product, ...]:
    """All that pass, in order."""
    passing = [product for product in products if _passes(product, filters)]
    match filters.order:
        case "price-low":
            passing.sort(key=lambda product: (product.price_cents, product.name))
        case "price-high":
            passing.sort(key=lambda product: (-product.price_cents, product.name))
        case "rating":
            passing.sort(key=lambda product: (-product.rating, product.name))
        case "name":
            passing.sort(key=lambda product: product.name)
    return tuple(passing)


def listing(products: Sequence[Product], filters: Filters) -> Listing:
    everything = found(products, filters)
    num_pages = max(1, math.ceil(len(everything) / PAGE_SIZE))
    page = min(filters.page, num_pages)
    return Listing(everything[(page - 1) * PAGE_SIZE : page * PAGE_SIZE], len(everything), page, num_pages)


def _passes(product: Product, filters: Filters) -> bool:
    text = f"{product.name} {product.maker} {product.category} {product.material} {product.text}".lower()
    return (
        (not filters.category or product.category == filters.category)
        and (not filters.maker or product.maker == filters.maker)
        and (not filters.colour or filters.colour in product.colours)
        and (not filters.max_price or product.price_cents <= filters.max_price * 100)
        and product.rating >= filters.min_rating
        and (product.in_stock or not filters.in_stock)
        and all(word in text for word in filters.words.lower().split())
    )


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return min(number, 1e6) if math.isfinite(number) and number > 0 else 0.0
