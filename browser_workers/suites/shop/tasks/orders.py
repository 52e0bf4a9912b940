"""Hard tasks that place an order: a long form in four steps, as a guest or with an account."""

from urllib.parse import urlencode

from browser_workers.suites.shop.catalogue import money
from browser_workers.suites.shop.customers import customers
from browser_workers.suites.shop.steps import Choose, Fill, Go, Press, Say, Step
from browser_workers.suites.shop.tasks.medium import account_of, sign_in
from browser_workers.suites.shop.tasks.proofs import ORDERED_ONCE, reviewed, signed_in
from browser_workers.suites.shop.tasks.task import DONE, Draw, ShopTask, page_has

PEOPLE = (
    ("Ines Falk", "Havnegata 9", "7010", "Trondheim", "Norway"),
    ("Bram Aerts", "Kaai 44", "2000", "Antwerp", "Belgium"),
    ("Marta Pires", "Rua do Sol 7", "8000-150", "Faro", "Portugal"),
    ("Oisin Daly", "21 Quay Street", "H91 K2X4", "Galway", "Ireland"),
)
_LABELS = ("Full name", "Street and number", "Postcode", "City")
_PLACED = (
    "shop.state().placed.map(order => [order.lines.map(line => [line.quantity, line.slug, line.colour, line.size]"
    ".filter(Boolean).join(' ')).sort().join(', '), order.address.name, order.address.street, order.address.postcode, "
    "order.address.city, order.address.country, order.delivery, order.payment, order.wrap ? 'wrapped' : 'plain']"
    ".join(' / ')).join('; ')"
)
"""Every order of this visit as text."""
_WAYS = {"standard": "Standard, 3 to 5 working days", "express": "Express, next working day"}
_DELIVERY = {"standard": "standard delivery", "express": "express delivery"}
_PAYMENTS = {"invoice": ("Invoice, 14 days", "by invoice"), "transfer": ("Bank transfer in advance", "by bank transfer")}


def write_address(person: tuple[str, ...]) -> tuple[Step, ...]:
    fields = tuple(Fill(label, text) for label, text in zip(_LABELS, person, strict=False))
    return *fields, Choose("Country", person[-1])


def _way_label(way: str, goods_cents: int) -> str:
    price = "€11.50" if way == "express" else "free" if goods_cents >= 8000 else "€4.90"
    return f"{_WAYS[way]} ({price})"


def _finish(way: str, payment: str, goods_cents: int, *, wrap: bool = False) -> tuple[Step, ...]:
    """From the delivery step to the placed order."""
    return (
        Press(_way_label(way, goods_cents)),
        *((Press("Gift wrap (€3.00)"),) if wrap else ()),
        Press("Continue to payment"),
        Press(_PAYMENTS[payment][0]),
        Press("I agree to the terms"),
        Press("Continue to review"),
        Press("Place order"),
        Say(DONE),
    )


def order_as_guest(draw: Draw) -> ShopTask:
    product = draw.product(such=lambda each: each.in_stock and not each.sizes)
    colour, person = draw.random.choice(product.colours), draw.random.choice(PEOPLE)
    way, payment = draw.random.choice(list(_WAYS)), draw.random.choice(list(_PAYMENTS))
    wrap = draw.random.random() < 0.5
    name, street, postcode, city, country = person
    wrapped = " as a gift, wrapped" if wrap else ", without gift wrap"
    delivery = 1150 if way == "express" else 0 if product.price_cents >= 8000 else 490
    total = money(product.price_cents + delivery + (300 if wrap else 0))
    return ShopTask(
        "order_as_guest",
        f"Order one {product.name} in {colour}{wrapped}, for {name}, {street}, {postcode} {city}, {country}, "
        f"email guest@millrace.test, with {_DELIVERY[way]}, paid {_PAYMENTS[payment][1]}.",
        f"product/{product.slug}",
        8,
        (
            page_has(
                _PLACED,
                " / ".join([f"1 {product.slug} {colour}", *person, way, payment, "wrapped" if wrap else "plain"]),
            ),
        ),
        (
            Choose("Colour", colour),
            Press("Add to cart"),
            Go("/checkout/address"),
            *write_address(person),
            Fill("Email", "guest@millrace.test"),
            Press("Continue to delivery"),
            *_finish(way, payment, product.price_cents, wrap=wrap),
        ),
        facts=(
            *reviewed(
                f"1 × {product.name} ({colour})",
                person,
                _WAYS[way],
                _PAYMENTS[payment][0],
            ),
            f"{'Gift wrap is in' if wrap else 'No gift wrap is in'} the sums of the review, which come to “Total {total}”.",
            "The shop says “Your order has the number T-5001” and “We write to guest@millrace.test”.",
            ORDERED_ONCE,
        ),
    )


def order_to_saved_address(draw: Draw) -> ShopTask:
    customer = draw.random.choice([each for each in customers() if len(each.addresses) > 1])
    address = draw.random.choice(customer.addresses)
    product = draw.product(such=lambda each: each.in_stock and not each.sizes)
    colour, quantity = product.colours[0], draw.random.randrange(1, 4)
    person = tuple(address[key] for key in ("name", "street", "postcode", "city", "country"))
    filled = urlencode({"add": f"{product.slug}:{colour}::{quantity}"})
    return ShopTask(
        "order_to_saved_address",
        f"{account_of(customer)} and order what is in the cart, to the saved address in {address['city']}, with express "
        "delivery and without gift wrap, paid by invoice.",
        f"cart?{filled}",
        8,
        (
            page_has(_PLACED, " / ".join([f"{quantity} {product.slug} {colour}", *person, "express", "invoice", "plain"])),
            page_has("shop.state().user", customer.email),
        ),
        (
            *sign_in(customer),
            Go("/checkout/address"),
            Press(f"Use the address in {address['city']}"),
            Press("Continue to delivery"),
            *_finish("express", "invoice", product.price_cents * quantity),
        ),
        facts=(
            signed_in(customer),
            *reviewed(f"{quantity} × {product.name} ({colour})", person, _WAYS["express"], _PAYMENTS["invoice"][0]),
            f"The sums of the review come to “Total {money(product.price_cents * quantity + 1150)}”, without gift wrap.",
            "The shop says “Your order has the number T-5001”.",
            ORDERED_ONCE,
        ),
    )
