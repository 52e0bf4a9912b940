"""The shop to a visitor whom it takes for a machine: every address shows one check, and nobody passes it."""

from browser_workers.site import SiteRequest, SiteResponse
from browser_workers.suites.shop.layout import NAME
from browser_workers.suites.shop.markup import Markup, element
from browser_workers.suites.shop.site import ORIGIN

_FORBIDDEN = 403
_STYLE = (
    "body { font: 18px/1.5 system-ui, sans-serif; max-width: 34rem; margin: 12vh auto; padding: 0 1.5rem; color: #2a2b28; } "
    "button { font: inherit; padding: .6rem 1.2rem; }"
)
_SCRIPT = """
let tries = 0;
document.querySelector("button").addEventListener("click", () => {
  tries += 1;
  document.querySelector("[role=alert]").textContent = `Check ${tries} failed. Access stays denied.`;
});
"""


class ShopWall:
    """Satisfies `browser_workers.site.Site`."""

    origin = ORIGIN

    def respond(self, _: SiteRequest) -> SiteResponse:
        return SiteResponse(_PAGE.encode(), status=_FORBIDDEN)


def _page() -> str:
    title = "Verify that you are human"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("title", f"{title} · {NAME}"),
        element("link", rel="icon", href="data:,"),
        element("style", Markup(_STYLE)),
    )
    check = element(
        "main",
        element("h1", title),
        element("p", f"{NAME} has seen unusual traffic from your network and denied access."),
        element("button", "I am not a robot", type="button"),
        element("p", role="alert"),
    )
    body = element("body", check, element("script", Markup(_SCRIPT)))
    return f"<!doctype html>{element('html', head, body, lang='en')}"


_PAGE = _page()
