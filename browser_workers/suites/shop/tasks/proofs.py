"""Facts that several templates ask for: what a picture has to show, as a person would write it into a rubric."""

from collections.abc import Sequence

from browser_workers.suites.shop.catalogue import Product, money
from browser_workers.suites.shop.customers import Customer

ORDERED_ONCE = "No screenshot shows “Your order has the number T-5002”: only one order was placed."


def added(product: Product, colour: str, size: str = "", quantity: int = 1) -> tuple[str, ...]:
    """So many of a product, and nothing else, are in the cart."""
    chosen = f"“Colour {colour}” and “Size {size}”" if size else f"“Colour {colour}”"
    options = ", ".join(filter(None, (colour, size)))
    return (
        f"The product page “{product.name}” says “Added {quantity} to your cart” with {chosen} chosen, "
        f"or the cart lists “{product.name} {options}” with the sum “{money(product.price_cents * quantity)}”.",
        f"At the end the header counts “Cart {quantity}”: nothing else is in the cart.",
    )


def signed_in(customer: Customer) -> str:
    return (
        f"After signing in the page says “Good to see you, {customer.name}”, or the header shows “{customer.name.split()[0]}”."
    )


def reviewed(line: str, person: Sequence[str], way: str, payment: str) -> tuple[str, ...]:
    """`person` is name, street, postcode, city and country."""
    return (
        f"The checkout's review lists “{line}”.",
        f"The checkout's review says “To: {one_line(person)}”, “By: {way}” and “Paid by: {payment}”.",
    )


def one_line(person: Sequence[str]) -> str:
    """As the pages write an address."""
    name, street, postcode, city, country = person
    return f"{name}, {street}, {postcode} {city}, {country}"


def amount(number: int) -> str:
    """As listings count."""
    return f"{number} product{'' if number == 1 else 's'}"
