"""The pages that sell: home, listings, products."""

from browser_workers.suites.shop.catalogue import Catalogue, Category, Product, money
from browser_workers.suites.shop.drawing import picture
from browser_workers.suites.shop.layout import breadcrumbs, options, page
from browser_workers.suites.shop.listing import ORDERS, Filters, Listing
from browser_workers.suites.shop.markup import Child, Markup, element

_RATINGS = {"": "Any rating", "3.5": "3.5 and up", "4": "4 and up", "4.5": "4.5 and up"}
_MAX_QUANTITY = 10


def home(catalogue: Catalogue) -> Markup:
    best = sorted(catalogue.products, key=lambda product: (-product.rating, product.name))[:4]
    hero = element(
        "section",
        element(
            "div",
            element("p", "Autumn, unhurried", class_="eyebrow"),
            element("h1", "Things that last, from small workshops."),
            element("p", "Six rooms full of kettles, coats and notebooks. Everything can be mended, and we say who made it."),
            element("a", "See what is new", href="/search", class_="button"),
            element("a", "How we choose", href="/help/makers", class_="button quiet"),
        ),
        element(
            "div",
            [picture(catalogue, _first(catalogue, kind)) for kind in ("Table Lamp", "Teapot", "Planter")],
            class_="still",
        ),
        class_="hero",
    )
    rooms = element(
        "section",
        element("h2", "Rooms"),
        element("div", [_room(catalogue, each) for each in catalogue.categories], class_="rooms"),
    )
    rated = element("section", element("h2", "Best rated"), _cards(catalogue, best, "cards four"))
    return page(catalogue, "Home", hero, rooms, rated, scripts=("welcome",))


def listing_page(catalogue: Catalogue, filters: Filters, found: Listing) -> Markup:
    category = catalogue.category(filters.category)
    heading = category.name if category else f"Results for “{filters.words}”" if filters.words else "All products"
    path = f"/category/{category.slug}" if category else "/search"
    amount = f"{found.num_found} product{'' if found.num_found == 1 else 's'}"
    shown: Child = _cards(catalogue, found.products, "cards")
    if not found.products:
        shown = element("p", "Nothing fits. Take a filter away, or try another word.", class_="empty")
    return page(
        catalogue,
        heading,
        breadcrumbs(here=heading),
        element("h1", heading),
        element("p", category.tagline, class_="lead") if category else None,
        element(
            "div",
            _filters(catalogue, filters, path),
            element("div", element("p", amount, class_="amount", role="status"), shown, _pages(path, filters, found)),
            class_="browse",
        ),
        words=filters.words,
        here=filters.category,
    )


def product_page(catalogue: Catalogue, product: Product) -> Markup:
    category = catalogue.category(product.category)
    assert category is not None
    facts = {
        "Article number": product.article,
        "Maker": product.maker,
        "Made in": product.made_in,
        "Material": product.material,
        "Weight": f"{product.weight_g:,} g",
        "Care": product.care,
    }
    table = element(
        "table", [element("tr", element("th", name, scope="row"), element("td", value)) for name, value in facts.items()]
    )
    return page(
        catalogue,
        product.name,
        breadcrumbs((category.name, f"/category/{category.slug}"), here=product.name),
        element(
            "div",
            element("div", picture(catalogue, product), class_="stage"),
            element(
                "div",
                element("p", product.maker, class_="maker"),
                element("h1", product.name),
                _stars(product),
                _price(product),
                element("p", product.text),
                _order_form(catalogue, product),
            ),
            class_="product",
        ),
        element("section", element("h2", "Details"), table, class_="details"),
        element(
            "section", element("h2", "Reviews"), [_review(each.author, each.stars, each.text) for each in product.reviews]
        ),
        scripts=("product",),
        here=product.category,
    )


def outlet_page(catalogue: Catalogue) -> Markup:
    reduced = [product for product in catalogue.products if product.was_cents is not None]
    return page(
        catalogue,
        "Outlet",
        breadcrumbs(here="Outlet"),
        element("h1", "Outlet"),
        element("p", f"{len(reduced)} products at a lower price, while they last.", class_="lead"),
        _cards(catalogue, reduced, "cards four"),
        here="outlet",
    )


# parts ----------------------------------------------------------------------------------------------------------------


def _first(catalogue: Catalogue, kind: str) -> Product:
    return next(product for product in catalogue.products if product.kind == kind)


def _room(catalogue: Catalogue, category: Category) -> Markup:
    product = catalogue.of_category(category.slug)[0]
    name = element("strong", category.name)
    return element(
        "a", picture(catalogue, product), name, element("span", category.tagline), href=f"/category/{category.slug}"
    )


def _cards(catalogue: Catalogue, products: tuple[Product, ...] | list[Product], kind: str) -> Markup:
    return element("ul", [element("li", _card(catalogue, product)) for product in products], class_=kind)


def _card(catalogue: Catalogue, product: Product) -> Markup:
    sale = element("span", "Sale", class_="tag") if product.was_cents else None
    gone = element("span", "Sold out", class_="tag grey") if not product.in_stock else None
    return element(
        "article",
        element("div", picture(catalogue, product), sale, gone, class_="stage"),
        element("h3", element("a", product.name, href=f"/product/{product.slug}")),
        element("p", product.maker, class_="maker"),
        _stars(product),
        _price(product),
        class_="card",
    )


def _stars(product: Product) -> Markup:
    full = round(product.rating)
    stars = element("span", "★" * full + "☆" * (5 - full), class_="stars", aria_hidden="true")
    return element("p", stars, f" {product.rating:.1f} ({product.num_reviews} ratings)", class_="rating")


def _price(product: Product) -> Markup:
    was = element("s", money(product.was_cents)) if product.was_cents else None
    return element("p", element("strong", money(product.price_cents)), " ", was, class_="price")


def _review(author: str, stars: int, text: str) -> Markup:
    head = element("h3", author, element("span", f"{stars} of 5 stars", class_="rating"))
    return element("article", head, element("p", text), class_="review")


def _select(label: str, name: str, names: dict[str, str], chosen: str) -> Markup:
    return element("label", element("span", label), element("select", options(names, chosen), name=name))


def _filters(catalogue: Catalogue, filters: Filters, path: str) -> Markup:
    price = element("input", type="number", name="max", min=0, step=1, value=filters.max_price or "", inputmode="numeric")
    stock = element("input", type="checkbox", name="stock", value=1, checked=filters.in_stock)
    rating = f"{filters.min_rating:g}" if filters.min_rating else ""
    return element(
        "form",
        element("h2", "Filter and sort"),
        element("input", type="hidden", name="q", value=filters.words) if filters.words else None,
        _select("Maker", "maker", {"": "All makers", **{each: each for each in sorted(catalogue.makers)}}, filters.maker),
        _select("Colour", "colour", {"": "All colours", **{each: each for each in sorted(catalogue.colours)}}, filters.colour),
        element("label", element("span", "Highest price (€)"), price),
        _select("Rating", "rating", _RATINGS, rating),
        element("label", stock, " In stock only", class_="tick"),
        _select("Sort by", "sort", ORDERS, filters.order),
        element("button", "Apply", type="submit"),
        element("a", "Clear all", href=path, class_="clear"),
        action=path,
        class_="filters",
        aria_label="Filter and sort",
    )


def _pages(path: str, filters: Filters, found: Listing) -> Markup | None:
    if found.num_pages == 1:
        return None

    def link(label: str, number: int, *, current: bool = False) -> Markup:
        query = filters.query(page=number)
        return element("a", label, href=f"{path}?{query}" if query else path, aria_current="page" if current else None)

    return element(
        "nav",
        link("Previous", found.page - 1) if found.page > 1 else None,
        [link(f"Page {number}", number, current=number == found.page) for number in range(1, found.num_pages + 1)],
        link("Next", found.page + 1) if found.page < found.num_pages else None,
        aria_label="Pages",
        class_="pages",
    )


def _order_form(catalogue: Catalogue, product: Product) -> Markup:
    if not product.in_stock:
        return element("p", "Sold out. Ask for it at one of our ", element("a", "stores", href="/stores"), ".", class_="empty")
    please = {"": "Please choose"}
    guide = (
        element("a", "Size guide (new tab)", href="/help/sizes", target="_blank", class_="guide") if product.sizes else None
    )
    swatches = " ".join(f"{name}:{','.join(catalogue.colours[name])}" for name in product.colours)
    return element(
        "form",
        _select("Colour", "colour", {**please, **{each: each for each in product.colours}}, ""),
        _select("Size", "size", {**please, **{each: each for each in product.sizes}}, "") if product.sizes else None,
        _select("Quantity", "quantity", {str(n): str(n) for n in range(1, _MAX_QUANTITY + 1)}, "1"),
        element("button", "Add to cart", type="submit"),
        guide,
        element("p", role="alert", class_="problem"),
        element("p", role="status", class_="status"),
        class_="order",
        novalidate=True,
        data_slug=product.slug,
        data_name=product.name,
        data_cents=product.price_cents,
        data_swatches=swatches,
    )
