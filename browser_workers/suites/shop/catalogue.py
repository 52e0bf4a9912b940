"""Draws the shop's products from a seed over a list of words. The same seed always gives the same shop."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

SEED = 7
"""Of the shop that the suite serves."""
_NUM_A_CATEGORY = 15
_ONE_SIZE = ()
_MAX_REVIEWS = 4


@dataclass(frozen=True, slots=True)
class Review:
    author: str
    stars: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    slug: str
    name: str
    category: str
    """Slug of it."""
    kind: str
    maker: str
    article: str
    """Article number, as in `TT-1042`."""
    price_cents: int
    was_cents: int | None
    """The price before the sale."""
    rating: float
    """1 to 5, to one decimal."""
    num_reviews: int
    colours: tuple[str, ...]
    sizes: tuple[str, ...]
    """Empty: there is one."""
    in_stock: bool
    material: str
    weight_g: int
    made_in: str
    care: str
    text: str
    reviews: tuple[Review, ...]


@dataclass(frozen=True, slots=True)
class Category:
    slug: str
    name: str
    tagline: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    categories: tuple[Category, ...]
    products: tuple[Product, ...]
    makers: tuple[str, ...]
    colours: Mapping[str, tuple[str, str]]
    """Two hex values by name: the colour, and its shade."""

    def product(self, slug: str) -> Product | None:
        return next((each for each in self.products if each.slug == slug), None)

    def category(self, slug: str) -> Category | None:
        return next((each for each in self.categories if each.slug == slug), None)

    def of_category(self, slug: str) -> tuple[Product, ...]:
        return tuple(each for each in self.products if each.category == slug)


def money(cents: int) -> str:
    """As in `€1,234.50`."""
    return f"€{cents / 100:,.2f}"


@cache
def words() -> Mapping[str, Any]:
    text = (resources.files("browser_workers.suites.shop") / "data" / "words.json").read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


@cache
def catalogue(seed: int = SEED) -> Catalogue:
    source = words()
    draw = random.Random(seed)  # noqa: S311
    return Catalogue(
        categories=tuple(Category(each["slug"], each["name"], each["tagline"]) for each in source["categories"]),
        products=tuple(product for category in source["categories"] for product in _products(category, draw)),
        makers=tuple(source["makers"]),
        colours={name: (main, shade) for name, (main, shade) in source["colours"].items()},
    )


def _products(category: Mapping[str, Any], draw: random.Random) -> Iterator[Product]:
    kinds = category["kinds"]
    names = draw.sample(words()["series"], _NUM_A_CATEGORY)
    for index, series in enumerate(names):
        yield _product(category, kinds[index % len(kinds)], series, draw)


def _product(category: Mapping[str, Any], kind: Mapping[str, Any], series: str, draw: random.Random) -> Product:
    source = words()
    name = f"{series} {kind['noun']}"
    price = draw.randrange(kind["price"][0], kind["price"][1], 50)
    on_sale = draw.random() < 0.2
    rating = min(5.0, round(draw.triangular(2.8, 5.1, 4.5), 1))
    sizes = _ONE_SIZE
    if "sizes" in category:
        sizes = ("One size",) if kind["noun"] == "Beanie" else tuple(category["sizes"][draw.randrange(2) :])
    return Product(
        slug=name.lower().replace(" ", "-"),
        name=name,
        category=category["slug"],
        kind=kind["noun"],
        maker=draw.choice(source["makers"]),
        article=f"TT-{draw.randrange(1000, 10_000)}",
        price_cents=price,
        was_cents=round(price * 1.25 / 50) * 50 if on_sale else None,
        rating=rating,
        num_reviews=draw.randrange(3, 260),
        colours=tuple(draw.sample(sorted(source["colours"]), draw.randrange(2, 5))),
        sizes=sizes,
        in_stock=draw.random() > 0.12,
        material=draw.choice(kind["materials"]),
        weight_g=draw.randrange(kind["weight"][0], kind["weight"][1], 2 if kind["weight"][1] < 100 else 10),
        made_in=draw.choice(source["towns"]),
        care=draw.choice(source["care"]),
        text=kind["text"].format(n=draw.randrange(2, 10)),
        reviews=tuple(_reviews(rating, source, draw)),
    )


def _reviews(rating: float, source: Mapping[str, Any], draw: random.Random) -> Iterator[Review]:
    authors: Sequence[str] = draw.sample(source["reviewers"], draw.randrange(2, _MAX_REVIEWS + 1))
    for author in authors:
        stars = max(2, min(5, round(rating + draw.uniform(-1.0, 0.6))))
        yield Review(author, stars, draw.choice(source["reviews"][str(stars)]))
