"""Simulates hostile pages: texts that are none, errors that nobody expects, endless scripts.

`Hostility` is what a simulated page does, `HostileSuite` holds real pages for a real Chromium. Each ends as an observation
or as an episode that failed by name; what it may not do is end a worker.
"""

import enum
import html
from collections.abc import Sequence

from browser_workers.browser import Opening
from browser_workers.site import Documents
from browser_workers.suites import UnknownWebsite, suite

NAME = "hostile"
ORIGIN = "http://hostile.millrace.test"

TEXT = (
    "half \ud83d, \x00 nothing, \x1b]0;title\x07 \x1b[2J escapes, \u202e backwards, \u2066 apart, \x9b31m, \ufffe"
    + "long " * 20_000
)
"""A title: half of an emoji, control characters, escape sequences, bidirectional overrides, and far too much of it."""


class Hostility(enum.Enum):
    """What a simulated page does."""

    TEXT = "text"
    """It is called by what no text may hold."""
    RAISES = "raises"
    """Reading it raises what nobody expects."""
    HANGS = "hangs"
    """It answers no more."""


_BUTTON = "<button style='position:absolute;inset:0' onclick='{on_click}'>{label}</button>"


def _document(script: str, *, label: str = "go", on_click: str = "") -> bytes:
    button = _BUTTON.format(on_click=html.escape(on_click, quote=True), label=label)
    return f"<!doctype html><meta charset='utf-8'><title>page</title><body>{button}<script>{script}</script>".encode()


_PAGES: dict[str, bytes] = {
    "title": _document(r"document.title = 'half \ud83d \0 \x1b]0;x\x07 \u202e ' + 'long '.repeat(1e6)"),
    "label": _document("", label=f"{'x' * 79}\U0001f600{'y' * 500}"),
    "endless": _document("", on_click="for (;;) {}"),
    "dialogs": _document("setInterval(() => alert('again'), 20)"),
    "windows": _document("", on_click="for (let i = 0; i < 50; i++) window.open(location)"),
    "leaving": _document("setInterval(() => { location.search = Math.random() }, 60)"),
    "replacing": _document("setInterval(() => { document.open(); document.write('<p>again'); document.close() }, 40)"),
    "overrides": _document(
        "String = () => 'x'.repeat(1e7); String.prototype.slice = () => { throw 1 };"
        "Array.from = () => { throw 2 }; JSON.stringify = () => { throw 3 }; Object.keys = () => { throw 4 }"
    ),
}


@suite(NAME)
class HostileSuite:
    """`hostile:<page>`."""

    def __init__(self) -> None:
        self._site = Documents(origin=ORIGIN, documents={f"/{name}": body for name, body in _PAGES.items()})

    @property
    def pages(self) -> Sequence[str]:
        return tuple(_PAGES)

    def resolve(self, page: str, query: str) -> Opening:
        if page not in _PAGES:
            raise UnknownWebsite(f"the hostile suite has no page {page!r}: write one of {', '.join(_PAGES)}")
        return Opening(url=f"{ORIGIN}/{page}", site=self._site)
