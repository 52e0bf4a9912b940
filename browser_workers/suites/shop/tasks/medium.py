"""Tasks of medium difficulty: filters, options, forms, accounts, and pages that misbehave."""

from urllib.parse import urlencode

from browser_workers.suites.shop.catalogue import money
from browser_workers.suites.shop.customers import Customer, customers
from browser_workers.suites.shop.listing import Filters, found
from browser_workers.suites.shop.steps import Choose, Fill, Go, Press, Say, Step
from browser_workers.suites.shop.stores import stores
from browser_workers.suites.shop.tasks.proofs import added, amount, signed_in
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
from schemas.messages import CheckMatch

_LETTERS = ("Never", "Monthly", "Twice a month")
_LANGUAGES = ("English", "German", "Portuguese", "Norwegian")
_CATALOGUE_DESK = "0555 014 228"


def sign_in(customer: Customer) -> tuple[Step, ...]:
    return Go("/login"), Fill("Email", customer.email), Fill("Password", customer.password), Press("Sign in")


def account_of(customer: Customer) -> str:
    return f"Sign in as {customer.email} (password: {customer.password})"


def count_filtered(draw: Draw) -> ShopTask:
    category = draw.random.choice(draw.shop.categories)
    colour = draw.random.choice(sorted({each for product in draw.shop.of_category(category.slug) for each in product.colours}))
    limit = draw.random.choice((25, 40, 60, 90))
    filters = Filters(category=category.slug, colour=colour, max_price=limit)
    number = len(found(draw.shop.products, filters))
    return ShopTask(
        "count_filtered",
        f"How many products in {category.name} come in {colour} and cost at most €{limit}? Answer with the number.",
        f"category/{category.slug}",
        4,
        (says_number(number),),
        (Choose("Colour", colour), Fill("Highest price (€)", str(limit)), Press("Apply"), Say(str(number))),
        facts=(
            f"The listing of {category.name}, known by “{category.tagline}”, was filtered by “Colour {colour}” and "
            f"“Highest price (€) {limit}” and counts “{amount(number)}”.",
        ),
    )


def cheapest_of_maker(draw: Draw) -> ShopTask:
    while True:
        maker = draw.random.choice(draw.shop.makers)
        products = found(draw.shop.products, Filters(maker=maker, order="price-low"))
        if only_one([product.price_cents for product in products]):
            break
    name = products[0].name
    return ShopTask(
        "cheapest_of_maker",
        f"Which is the cheapest product of {maker}? Answer with its name only.",
        "home",
        4,
        (says(name, f"The {name}"),),
        (Press("No thanks"), Go(f"/search?{urlencode({'maker': maker, 'sort': 'price-low'})}"), Say(name)),
        facts=(
            f"A listing with “Maker {maker}”, sorted by “Price: low to high”, begins with “{name}” at "
            f"“{money(products[0].price_cents)}”.",
        ),
    )


def sized_into_the_cart(draw: Draw) -> ShopTask:
    product = draw.product(such=lambda each: each.in_stock and len(each.sizes) > 1)
    colour, size, quantity = (
        draw.random.choice(product.colours),
        draw.random.choice(product.sizes),
        draw.random.randrange(2, 6),
    )
    return ShopTask(
        "sized_into_the_cart",
        f"Put {quantity} of the {product.name} in {colour}, size {size}, into the cart.",
        "category/clothing",
        5,
        (page_has(CART, f"{quantity} {product.slug} {colour} {size}"),),
        (
            Go(f"/product/{product.slug}"),
            Choose("Colour", colour),
            Choose("Size", size),
            Choose("Quantity", str(quantity)),
            Press("Add to cart"),
            Say(DONE),
        ),
        facts=added(product, colour, size, quantity),
    )


def preference(draw: Draw) -> ShopTask:
    customer = draw.random.choice(customers())
    letters = draw.random.choice([each for each in _LETTERS if each != customer.preferences["letters"]])
    language = draw.random.choice([each for each in _LANGUAGES if each != customer.preferences["language"]])
    mine = f"shop.state().customers['{customer.email}'].preferences"
    return ShopTask(
        "preference",
        f"{account_of(customer)} and set the newsletter to “{letters}” and the language to {language}. "
        "Leave the rest as it is.",
        "login",
        5,
        (page_has(f"Object.values({mine}).join(' / ')", f"{letters} / {language} / {customer.preferences['contact']}"),),
        (
            *sign_in(customer),
            Go("/account/preferences"),
            Choose("Newsletter", letters),
            Choose("Language", language),
            Press("Save preferences"),
            Say(DONE),
        ),
        facts=(
            signed_in(customer),
            f"At the end the preferences show “Newsletter {letters}”, “Language {language}” and "
            f"“Reach me by {customer.preferences['contact']}”, and the page says “Your preferences are saved”.",
        ),
    )


def slow_hours(draw: Draw) -> ShopTask:
    store = draw.random.choice([each for each in stores() if each.saturday != "closed"])
    closes = store.saturday.partition(" to ")[2]
    return ShopTask(
        "slow_hours",
        f"When does the store in {store.city} close on Saturdays? The page may take a moment. "
        "Answer with the time, as in 16:30.",
        "help/contact",
        4,
        (says(closes, f"0{closes}"),),
        (Press("Stores"), Say(closes)),
        facts=(f"The page of the stores gives “{store.saturday}” for Saturdays in “{store.city}”.",),
    )


def outlet(draw: Draw) -> ShopTask:
    reduced = [product for product in draw.shop.products if product.was_cents is not None]
    product = draw.random.choice(reduced)
    assert product.was_cents is not None
    return ShopTask(
        "outlet",
        f"How much did the {product.name} cost before it came to the outlet? The outlet's page sometimes fails at first. "
        "Answer with the number of euros.",
        "search",
        4,
        (says_number(product.was_cents / 100),),
        (Press("Outlet"), Press("Try again"), Press(product.name), Say(euros(product.was_cents))),
        facts=(
            f"The shop offers “{product.name}” at “{money(product.price_cents)} {money(product.was_cents)}”, "
            "the second price struck out.",
        ),
    )


def order_total(draw: Draw) -> ShopTask:
    customer = draw.random.choice(customers())
    order = draw.random.choice(customer.orders)
    return ShopTask(
        "order_total",
        f"{account_of(customer)}. What was the total of the order of {order.date}? Answer with the number of euros.",
        "home",
        5,
        (says_number(order.total_cents / 100),),
        (Press("No thanks"), *sign_in(customer), Go("/account/orders"), Say(euros(order.total_cents))),
        facts=(
            signed_in(customer),
            f"The account lists the order of “{order.date}” with the total “{money(order.total_cents)}”.",
        ),
    )


def remove_from_cart(draw: Draw) -> ShopTask:
    first, second = draw.products(2, such=lambda each: each.in_stock and not each.sizes)
    filled = ",".join(f"{each.slug}:{each.colours[0]}::2" for each in (first, second))
    return ShopTask(
        "remove_from_cart",
        f"Take the {first.name} out of the cart and leave the {second.name} in it.",
        f"cart?add={filled}",
        4,
        (page_has(CART, f"2 {second.slug} {second.colours[0]}"),),
        (Choose(f"Quantity of {first.name}", "0 (remove)"), Say(DONE)),
        facts=(
            f"At the end the cart lists “{second.name}” and the header counts “Cart 2”: only the {first.name} was taken out.",
        ),
    )


def newsletter(draw: Draw) -> ShopTask:
    name = draw.random.choice(("wren", "odile", "pascal", "juno"))
    email = f"{name}{draw.random.randrange(10, 100)}@millrace.test"
    return ShopTask(
        "newsletter",
        f"Subscribe {email} to the newsletter in the dialog that greets new visitors.",
        "home",
        4,
        (
            page_has("shop.state().newsletter", email),
            page_has("String(document.querySelector('dialog[open]') === null)", "true"),
        ),
        (Fill("Your email", email), Press("Sign me up"), Say(DONE)),
        facts=(f"After the dialog was sent the shop says “Thank you. We write to {email}”.",),
    )


def catalogue_desk(_: Draw) -> ShopTask:
    return ShopTask(
        "catalogue_desk",
        "Try to open the printed catalogue. If that does not work, find the telephone number to order it by; "
        "answer with the number.",
        "search",
        6,
        (says(_CATALOGUE_DESK.replace(" ", r"\W?"), match=CheckMatch.PATTERN),),
        (Press("Printed catalogue"), Go("/help/contact"), Say(_CATALOGUE_DESK)),
        facts=(f"The help centre says “For the printed catalogue, ask by post or ring {_CATALOGUE_DESK}”.",),
    )


def heavier(draw: Draw) -> ShopTask:
    first = draw.product()
    pair = (first, draw.product(such=lambda each: each.weight_g != first.weight_g))
    heavy = max(pair, key=lambda product: product.weight_g)
    return ShopTask(
        "heavier",
        f"Which is heavier, the {pair[0].name} or the {pair[1].name}? Answer with its name only.",
        f"product/{pair[0].slug}",
        4,
        (says(heavy.name, f"The {heavy.name}"),),
        (Go(f"/product/{pair[1].slug}"), Say(heavy.name)),
        facts=(
            FactGroup(
                "Both weights were looked up on the product pages.",
                tuple(f"The product page “{each.name}” gives “Weight {each.weight_g:,} g”." for each in pair),
            ),
        ),
    )


TEMPLATES: tuple[Template, ...] = (
    count_filtered,
    cheapest_of_maker,
    sized_into_the_cart,
    preference,
    slow_hours,
    outlet,
    order_total,
    remove_from_cart,
    newsletter,
    catalogue_desk,
    heavier,
)
