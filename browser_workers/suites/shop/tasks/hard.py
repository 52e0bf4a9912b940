"""Hard tasks: several pages that depend on each other, long forms, comparisons over many products."""

from urllib.parse import urlencode

from browser_workers.suites.shop.catalogue import Product, money
from browser_workers.suites.shop.customers import customers
from browser_workers.suites.shop.listing import Filters, found
from browser_workers.suites.shop.steps import Choose, Fill, Go, Press, Say, Step
from browser_workers.suites.shop.tasks.medium import account_of, sign_in
from browser_workers.suites.shop.tasks.proofs import ORDERED_ONCE, added, amount, one_line, reviewed, signed_in
from browser_workers.suites.shop.tasks.task import (
    CART,
    DONE,
    Draw,
    FactGroup,
    ShopTask,
    Template,
    euros,
    only_one,
    page_has,
    says,
    says_number,
)

_PEOPLE = (
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


def _write_address(person: tuple[str, ...]) -> tuple[Step, ...]:
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
    colour, person = draw.random.choice(product.colours), draw.random.choice(_PEOPLE)
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
            *_write_address(person),
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


def order_again(draw: Draw) -> ShopTask:
    customer = draw.random.choice(customers())
    order = draw.random.choice(customer.orders)
    lines = sorted(
        " ".join(filter(None, (str(line.quantity), line.product.slug, line.colour, line.size))) for line in order.lines
    )
    return ShopTask(
        "order_again",
        f"{account_of(customer)} and put everything from the order {order.number} into the cart again. Do not order it yet.",
        "login",
        7,
        (page_has(CART, "; ".join(lines)),),
        (*sign_in(customer), Press("Orders"), Press(order.number), Press("Order again"), Say(DONE)),
        facts=(
            signed_in(customer),
            FactGroup(
                f"The cart holds what the order {order.number} held, and nothing else.",
                (
                    *(
                        f"At the end the cart lists “{line.product.name} {', '.join(filter(None, (line.colour, line.size)))}”."
                        for line in order.lines
                    ),
                    f"At the end the header counts “Cart {sum(line.quantity for line in order.lines)}”.",
                ),
            ),
        ),
    )


def best_of_colour(draw: Draw) -> ShopTask:
    while True:
        category = draw.random.choice(draw.shop.categories)
        colour = draw.random.choice(sorted(draw.shop.colours))
        filters = Filters(category=category.slug, colour=colour, min_rating=4.0, in_stock=True, order="price-low")
        products = found(draw.shop.products, filters)
        if len(products) > 1 and not products[0].sizes and only_one([each.price_cents for each in products]):
            break
    product = products[0]
    return ShopTask(
        "best_of_colour",
        f"Of all products in {category.name} that are in stock, come in {colour} and are rated 4 or better, put the cheapest "
        f"one into the cart, in {colour}.",
        f"category/{category.slug}",
        7,
        (page_has(CART, f"1 {product.slug} {colour}"),),
        (
            Go(f"/category/{category.slug}?{filters.query()}"),
            Press(product.name),
            Choose("Colour", colour),
            Press("Add to cart"),
            Say(DONE),
        ),
        facts=added(product, colour),
    )


def with_voucher(draw: Draw) -> ShopTask:
    product = draw.product(such=lambda each: each.in_stock and not each.sizes and each.price_cents >= 4500)
    goods = 2 * product.price_cents
    left = goods - round(goods / 10)
    total = left + (0 if left >= 8000 else 490)
    return ShopTask(
        "with_voucher",
        "The help centre names a voucher that takes 10 % off everything. Redeem it for what is in the cart. What is the "
        "total, with standard delivery? Answer with the number of euros.",
        f"cart?{urlencode({'add': f'{product.slug}:{product.colours[0]}::2'})}",
        7,
        (says_number(total / 100), page_has("shop.state().voucher", "HERRING10")),
        (Go("/help/vouchers"), Go("/cart"), Fill("Voucher", "HERRING10"), Press("Redeem"), Say(euros(total))),
        facts=(
            "The help centre says “HERRING10 10 % off everything”.",
            f"At the end the cart takes “Voucher HERRING10 −{money(goods - left)}” off and comes to “Total {money(total)}”.",
        ),
    )


def address_book(draw: Draw) -> ShopTask:
    customer, person = draw.random.choice(customers()), draw.random.choice(_PEOPLE)
    name, street, postcode, city, country = person
    mine = f"shop.state().customers['{customer.email}']"
    return ShopTask(
        "address_book",
        f"{account_of(customer)}, add the address {name}, {street}, {postcode} {city}, {country} to the address book, "
        "and make it the default.",
        "login",
        7,
        (
            page_has(f"Object.values({mine}.addresses[{mine}.standard]).join(' / ')", " / ".join(person)),
            page_has(f"{mine}.addresses.length", str(len(customer.addresses) + 1)),
        ),
        (
            *sign_in(customer),
            Go("/account/addresses"),
            *_write_address(person),
            Press("Save address"),
            Press(f"Make the address in {city} the default"),
            Say(DONE),
        ),
        facts=(
            signed_in(customer),
            f"At the end the address book shows “{one_line(person)} Default”.",
        ),
    )


def count_of_makers(draw: Draw) -> ShopTask:
    first, second = draw.random.sample(draw.shop.makers, 2)
    numbers = {maker: len(found(draw.shop.products, Filters(maker=maker, in_stock=True))) for maker in (first, second)}
    total = sum(numbers.values())
    return ShopTask(
        "count_of_makers",
        f"How many products of {first} and of {second} are in stock, both makers together? Answer with the number.",
        "home",
        7,
        (says_number(total),),
        (
            Press("No thanks"),
            Go(f"/search?{urlencode({'maker': first, 'stock': 1})}"),
            Go(f"/search?{urlencode({'maker': second, 'stock': 1})}"),
            Say(str(total)),
        ),
        facts=(
            FactGroup(
                "What is in stock was counted maker by maker.",
                tuple(
                    f"A listing with “Maker {maker}” and “In stock only” counts “{amount(number)}”."
                    for maker, number in numbers.items()
                ),
            ),
        ),
    )


def lightest(draw: Draw) -> ShopTask:
    while True:
        kind = draw.product().kind
        products = sorted((each for each in draw.shop.products if each.kind == kind), key=lambda each: each.weight_g)
        if len(products) > 2 and only_one([each.weight_g for each in products]):
            break
    name = products[0].name
    return ShopTask(
        "lightest",
        f"Which {kind} of the shop is the lightest? Answer with its name only.",
        f"category/{products[0].category}",
        8,
        (says(name, f"The {name}"),),
        (*(Go(f"/product/{each.slug}") for each in products), Say(name)),
        facts=(
            FactGroup(
                f"The weight of every {kind} was looked up.",
                tuple(f"The product page “{each.name}” gives “Weight {each.weight_g:,} g”." for each in products),
            ),
        ),
    )


def in_the_outlet(draw: Draw) -> ShopTask:
    def cut(product: Product) -> int:
        return (product.was_cents or 0) - product.price_cents

    reduced = sorted((each for each in draw.shop.products if each.was_cents and each.in_stock), key=cut, reverse=True)
    best = [each for each in reduced if cut(each) == cut(reduced[0])]
    product = best[0]
    size = product.sizes[0] if product.sizes else ""
    wanted = tuple(
        " ".join(filter(None, ("1", each.slug, colour, size)))
        for each in best
        for colour in each.colours
        for size in each.sizes or ("",)
    )
    return ShopTask(
        "in_the_outlet",
        "Find the product in the outlet that is in stock and whose price fell by the most euros. Put one of it into the cart, "
        "in any colour and size. The outlet's page sometimes fails at first.",
        "home",
        9,
        (page_has(CART, *wanted),),
        (
            Press("No thanks"),
            Press("Outlet"),
            Press("Try again"),
            Press(product.name),
            Choose("Colour", product.colours[0]),
            *((Choose("Size", size),) if size else ()),
            Press("Add to cart"),
            Say(DONE),
        ),
        facts=(
            " or ".join(
                f"The outlet offers “{each.name}” at “{money(each.price_cents)} {money(each.was_cents or 0)}”" for each in best
            )
            + ".",
            " or ".join(f"the product page “{each.name}” says “Added 1 to your cart”" for each in best) + ".",
            "At the end the header counts “Cart 1”: nothing else is in the cart.",
        ),
    )


TEMPLATES: tuple[Template, ...] = (
    order_as_guest,
    order_to_saved_address,
    order_again,
    best_of_colour,
    with_voucher,
    address_book,
    count_of_makers,
    lightest,
    in_the_outlet,
)
