"""Easy tasks: one fact, one page, one press."""

from browser_workers.suites.shop.articles import articles, summary
from browser_workers.suites.shop.catalogue import money
from browser_workers.suites.shop.steps import Choose, Go, Press, Say
from browser_workers.suites.shop.tasks.proofs import added
from browser_workers.suites.shop.tasks.task import (
    CART,
    DONE,
    Draw,
    ShopTask,
    Template,
    euros,
    page_has,
    says,
    says_number,
    stands_at,
)
from schemas.messages import CheckMatch

_NUMBERS = (
    ("Within how many days of arrival can unused things be sent back?", "returns", 45, "You have 45 days to change your mind"),
    ("For how many years are bags mended free of charge?", "repairs", 10, "bags for 10 years"),
    ("What does gift wrap cost, in euros?", "delivery", 3, "Gift wrap costs €3.00 an order"),
    ("For how many years are gift cards valid?", "vouchers", 4, "They are valid for 4 years"),
    ("How wide is a jumper of size L, in centimetres?", "sizes", 57, "L 57 cm"),
    (
        "In which year was the oldest maker founded?",
        "makers",
        1871,
        "The oldest of our makers is Low Mill Works, founded in 1871",
    ),
    ("Every how many months should waxed cotton be waxed anew?", "care", 18, "Wax it anew every 18 months"),
)
"""Question, article, number, and the words of the article that give it."""


def price(draw: Draw) -> ShopTask:
    product = draw.product()
    return ShopTask(
        "price",
        f"What does the {product.name} cost, in euros? Answer with the number.",
        f"category/{product.category}",
        1,
        (says_number(product.price_cents / 100),),
        (Go(f"/search?q={product.name.replace(' ', '+')}"), Say(euros(product.price_cents))),
        facts=(f"The shop offers “{product.name}” at “{money(product.price_cents)}”.",),
    )


def material(draw: Draw) -> ShopTask:
    product = draw.product()
    return ShopTask(
        "material",
        f"What is the {product.name} made of? Answer with the material only, as the shop writes it.",
        f"product/{product.slug}",
        1,
        (says(product.material),),
        (Say(product.material),),
        facts=(f"The product page “{product.name}” gives “Material {product.material}” in its details.",),
    )


def category(draw: Draw) -> ShopTask:
    chosen = draw.random.choice(draw.shop.categories)
    return ShopTask(
        "category",
        f"Open the page with everything for {chosen.name}.",
        "help",
        1,
        (stands_at(f"/category/{chosen.slug}"),),
        (Press(chosen.name), Say(DONE)),
        facts=(f"At the end the listing of {chosen.name}, known by “{chosen.tagline}”, is open beside “Filter and sort”.",),
    )


def article(draw: Draw) -> ShopTask:
    chosen = draw.random.choice(list(articles().values()))
    return ShopTask(
        "article",
        f"Find the article “{chosen.title}” in the help centre and stay on its page.",
        "home",
        2,
        (stands_at(f"/help/{chosen.slug}"),),
        (Press("No thanks"), Press("Help"), Go(f"/help/{chosen.slug}"), Say(DONE)),
        facts=(f"At the end the article itself is open: beside “More help” it begins with “{summary(chosen)}”",),
    )


def help_number(draw: Draw) -> ShopTask:
    question, slug, number, proof = draw.random.choice(_NUMBERS)
    return ShopTask(
        "help_number",
        f"{question} The help centre knows. Answer with the number.",
        "help",
        2,
        (says_number(number),),
        (Go(f"/help/{slug}"), Say(str(number))),
        facts=(f"The article “{articles()[slug].title}” of the help centre says “{proof}”.",),
    )


def product_page(draw: Draw) -> ShopTask:
    product = draw.product()
    return ShopTask(
        "product_page",
        f"Open the product page of the {product.name}.",
        "search",
        2,
        (stands_at(f"/product/{product.slug}"),),
        (Go(f"/search?q={product.name.replace(' ', '+')}"), Press(product.name), Say(DONE)),
        facts=(
            f"At the end the product page “{product.name}” is open, with “Article number {product.article}” in its details.",
        ),
    )


def cookies(draw: Draw) -> ShopTask:
    label, choice = draw.random.choice((("only necessary cookies", "necessary"), ("all cookies", "all")))
    press = "Only necessary" if choice == "necessary" else "Accept all"
    said = f"{'Only necessary' if choice == 'necessary' else 'All'} cookies are allowed"
    return ShopTask(
        "cookies",
        f"Answer the shop's question about cookies: allow {label}.",
        "search",
        1,
        (
            page_has("shop.state().consent", choice),
            page_has("document.cookie", f"consent={choice}", match=CheckMatch.CONTAINS),
        ),
        (Press(press), Say(DONE)),
        facts=(f"After the choice the shop says “{said}”.",),
    )


def into_the_cart(draw: Draw) -> ShopTask:
    product = draw.product(such=lambda each: each.in_stock and not each.sizes)
    colour = draw.random.choice(product.colours)
    return ShopTask(
        "into_the_cart",
        f"Put one {product.name} in {colour} into the cart.",
        f"product/{product.slug}",
        3,
        (page_has(CART, f"1 {product.slug} {colour}"),),
        (Choose("Colour", colour), Press("Add to cart"), Say(DONE)),
        facts=added(product, colour),
    )


TEMPLATES: tuple[Template, ...] = (price, material, category, article, help_number, product_page, cookies, into_the_cart)
