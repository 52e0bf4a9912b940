"""Pictures of products as inline SVG: a drawing per kind, in the colours of the product."""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources

from browser_workers.suites.shop.catalogue import Catalogue, Product
from browser_workers.suites.shop.markup import Markup, element


@cache
def _drawings() -> Mapping[str, str]:
    text = (resources.files("browser_workers.suites.shop") / "data" / "drawings.json").read_text(encoding="utf-8")
    found: Mapping[str, str] = json.loads(text)
    return found


def picture(catalogue: Catalogue, product: Product, colour: str = "") -> Markup:
    """In the given colour, or the product's first."""
    main, shade = catalogue.colours[colour or product.colours[0]]
    ground = element("ellipse", cx=100, cy=172, rx=64, ry=8, fill="#000", opacity="0.08")
    return element(
        "svg",
        ground,
        Markup(_drawings()[product.kind]),
        viewBox="0 0 200 200",
        role="img",
        aria_label=f"Drawing of the {product.name}",
        class_="picture",
        style=f"--a:{main};--b:{shade}",
    )
