"""Hard tasks: several pages that depend on each other, orders, comparisons over many products."""

from urllib.parse import urlencode

from browser_workers.suites.shop.catalogue import Product, money
from browser_workers.suites.shop.customers import customers
from browser_workers.suites.shop.listing import Filters, found
from browser_workers.suites.shop.steps import Choose, Fill, Go, Press, Say
from browser_workers.suites.shop.tasks.medium import account_of, sign_in
from browser_workers.suites.shop.tasks.orders import PEOPLE, order_as_guest, order_to_saved_address, write_address
from browser_workers.suites.shop.tasks.proofs import added, amount, one_line, signed_in
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
                        f"At the end the cart lists “{line.product.name} {', '.join(filter(None, (line.colour, line.size)))}” "
                        f"with the sum “{money(line.cents)}”."
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
    customer, person = draw.random.choice(customers()), draw.random.choice(PEOPLE)
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
            *write_address(person),
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
