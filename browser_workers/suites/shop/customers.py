"""Draws the shop's customers and the orders they placed before, from the catalogue's products."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from browser_workers.suites.shop.catalogue import SEED, Catalogue, Product, catalogue

_MONTHS = ("January", "March", "April", "June", "August", "October")
_STANDARD_CENTS = 490
_FREE_FROM_CENTS = 8000


@dataclass(frozen=True, slots=True)
class Line:
    """Of an order or a cart."""

    product: Product
    colour: str
    size: str
    quantity: int

    @property
    def cents(self) -> int:
        return self.product.price_cents * self.quantity


@dataclass(frozen=True, slots=True)
class Order:
    number: str
    date: str
    status: str
    lines: tuple[Line, ...]

    @property
    def total_cents(self) -> int:
        goods = sum(line.cents for line in self.lines)
        return goods + (0 if goods >= _FREE_FROM_CENTS else _STANDARD_CENTS)


@dataclass(frozen=True, slots=True)
class Customer:
    name: str
    email: str
    password: str
    default_address: int
    addresses: tuple[dict[str, str], ...]
    preferences: dict[str, str]
    orders: tuple[Order, ...]
    """Newest first."""


@cache
def customers(seed: int = SEED) -> tuple[Customer, ...]:
    text = (resources.files("browser_workers.suites.shop") / "data" / "customers.json").read_text(encoding="utf-8")
    return tuple(_customer(each, index, catalogue(seed)) for index, each in enumerate(json.loads(text)))


def as_json(customer: Customer) -> dict[str, Any]:
    """As the pages' scripts keep it."""
    return {
        "name": customer.name,
        "email": customer.email,
        "password": customer.password,
        "standard": customer.default_address,
        "addresses": list(customer.addresses),
        "preferences": customer.preferences,
        "orders": [
            {
                "number": order.number,
                "date": order.date,
                "status": order.status,
                "lines": [line_as_json(line) for line in order.lines],
                "address": customer.addresses[0],
                "total": order.total_cents,
            }
            for order in customer.orders
        ],
    }


def line_as_json(line: Line) -> dict[str, Any]:
    return {
        "slug": line.product.slug,
        "name": line.product.name,
        "cents": line.product.price_cents,
        "colour": line.colour,
        "size": line.size,
        "quantity": line.quantity,
    }


def _customer(fields: dict[str, Any], index: int, shop: Catalogue) -> Customer:
    draw = random.Random(f"customer {index}")  # noqa: S311
    return Customer(
        name=fields["name"],
        email=fields["email"],
        password=fields["password"],
        default_address=fields["standard"],
        addresses=tuple(fields["addresses"]),
        preferences=fields["preferences"],
        orders=tuple(_orders(index, shop, draw)),
    )


def _orders(index: int, shop: Catalogue, draw: random.Random) -> Iterator[Order]:
    sold = [product for product in shop.products if product.in_stock]
    for position in range(3):
        lines = tuple(
            Line(product, draw.choice(product.colours), draw.choice(product.sizes or ("",)), draw.randrange(1, 4))
            for product in draw.sample(sold, draw.randrange(1, 4))
        )
        date = f"{draw.randrange(1, 29)} {_MONTHS[len(_MONTHS) - 1 - 2 * position]}"
        yield Order(f"T-{4100 + 37 * index - 11 * position}", date, "On its way" if position == 0 else "Delivered", lines)
