"""Accessibility trees of a real Chromium, in both forms."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from browser_workers.browser import Opening, View
from browser_workers.chromium import accessibility, document_elements
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.site import Documents
from schemas.browser_config import BrowserConfig
from schemas.context_config import ContextConfig
from schemas.env_config import EnvConfig
from tests.deadlines import HANGS_S
from tests.support.browsers.patience import wait_for_pages

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
ORIGIN = "http://tree.test"

STYLE = b"<style>body{margin:0} .at{position:absolute;left:0;margin:0;box-sizing:border-box;width:100px;height:30px}</style>"
PAGE = b"""<!doctype html><title>Order</title>
<main><h1 style="margin:0">Your <i>order</i></h1><div><div><p>Two <b>bold</b> words</p></div></div>
<form><input class=at style="top:100px" aria-label="Mail" required value="a@b.test" title="Work address">
<input class=at type=checkbox style="top:140px" aria-label="News" checked>
<button class=at style="top:180px" disabled>Send</button>
<button class=at style="top:220px" aria-expanded=false>More</button></form>
<ul><li><a class=at style="top:260px" href="/terms?x=1">Terms</a></ul>
<div aria-hidden=true>hidden</div><span id=clicked class=at style="top:300px">Only clicked</span></main>
<iframe src="/inner" style="position:absolute;left:0;top:340px;border:0;width:300px;height:60px"></iframe>
<script>clicked.onclick = () => {}</script>"""
PAGES = {
    "/": PAGE + STYLE,
    "/inner": b"<!doctype html><title>Inside</title><button class=at>Framed</button>" + STYLE,
    "/huge": b"<!doctype html><title>Huge</title><a href=/x>first</a>" + b"<p><a href=/x>more</a>" * 3000,
    "/shadow": b"<!doctype html><title>Shadow</title><a href=/x>first</a><p id=host></p>"
    b"<script>host.attachShadow({mode: 'open'}).innerHTML = '<i>more</i>'.repeat(6000)</script>",
    "/framed": b"<!doctype html><button>Own</button><p><iframe sandbox=allow-scripts srcdoc='<button>Framed'></iframe>",
    "/long": b"<!doctype html><title>Long</title>" + b"<p>words" * 900,
}

WORDS, LAST = "document.getElementById('words')", "document.currentScript.previousSibling"
SAYS_IT_AGAIN = {
    "labelled-by-it": "<p role=group aria-labelledby=words>",
    "labelled-by-a-reference": f"<p role=group></p><script>{LAST}.ariaLabelledByElements = [{WORDS}]</script>",
    "described-by-it": "<button aria-describedby=words>",
    "titled": f"<p role=group></p><script>{LAST}.title = text</script>",
    "pictured": f"<img><script>{LAST}.alt = text</script>",
    "asked-for": f"<input><script>{LAST}.placeholder = text</script>",
    "filled-in": f"<input><script>{LAST}.value = text</script>",
    "led-to": f"<a>x</a><script>{LAST}.href = '/' + text</script>",
}
"""Of one long text."""


def says_it_again(html: str, length: int) -> bytes:
    long = f"<p id=words hidden></p><script>const text = {WORDS}.textContent = 'x'.repeat({length})</script>"
    return f"<!doctype html><title>Names</title><button>first</button>{long}{html * 60}".encode()


PAGES |= {f"/{name}": says_it_again(html, 100_000) for name, html in SAYS_IT_AGAIN.items()}
PAGES["/short"] = says_it_again(SAYS_IT_AGAIN["labelled-by-it"], 100)
SITE = Documents(origin=ORIGIN, documents=PAGES)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree that comes late is no tree that is too large."""
    wait_for_pages(monkeypatch)
    monkeypatch.setattr(accessibility, "_TREE_S", HANGS_S)
    monkeypatch.setattr(document_elements, "_SCAN_BUDGET_MS", 1000 * HANGS_S)


@asynccontextmanager
async def views(*paths: str, rich: bool, marks: bool) -> AsyncIterator[dict[str, View]]:
    """Of pages, by path."""
    config = BrowserConfig(viewport_width=1000, viewport_height=1000)
    context = ContextConfig(interaction_mode="set_of_marks" if marks else "coordinates", accessibility_tree=True)
    seen: dict[str, View] = {}
    async with PlaywrightBrowser(config, EnvConfig(use_rich_actree=rich), context) as browser:
        for path in paths:
            async with browser.session(Opening(url=ORIGIN + path, site=SITE, quiet_s=0.0)) as session:
                await session.open()
                seen[path] = await session.view()
        yield seen


async def test_plain() -> None:
    async with views("/", "/long", "/huge", "/shadow", rich=False, marks=False) as seen:
        assert seen["/"].accessibility_tree.split("\n") == [
            'document "Order"',
            "  main",
            '    heading "Your order"',
            '    text "Two bold words"',
            "    form",
            '      textbox "Mail"',
            '        text "a@b.test"',
            '      checkbox "News"',
            '      button "Send"',
            '      button "More"',
            "    list",
            "      listitem",
            '        link "Terms"',
            '    text "Only clicked"',
            "  frame",
            '    document "Inside"',
            '      button "Framed"',
        ]
        assert seen["/"].elements == ()
        long = seen["/long"].accessibility_tree.split("\n")
        assert long[:2] == ['document "Long"', '  text "words"']
        assert long[-1] == "(401 more lines were left out)"
        too_large = 'document "too large a page for its whole tree: what can be acted on in view"'
        assert seen["/huge"].accessibility_tree.split("\n")[:3] == [too_large, '  a "first"', '  a "more"']
        assert seen["/shadow"].accessibility_tree.split("\n") == [too_large, '  a "first"']


async def test_long_names_count_as_often_as_they_are_said() -> None:
    async with views(*(f"/{name}" for name in SAYS_IT_AGAIN), "/short", rich=False, marks=False) as seen:
        trees = {path: view.accessibility_tree.split("\n") for path, view in seen.items()}
    assert trees.pop("/short")[:2] == ['document "Names"', '  button "first"']
    too_large = 'document "too large a page for its whole tree: what can be acted on in view"'
    assert {name: tree[0] for name, tree in trees.items()} == dict.fromkeys(trees, too_large)


async def test_rich_with_the_numbers_of_the_screenshot() -> None:
    async with views("/", "/huge", rich=True, marks=True) as seen:
        assert seen["/"].accessibility_tree.split("\n") == [
            'document "Order"',
            "  main",
            '    heading "Your order" level 1',
            '    text "Two bold words"',
            "    form",
            '      [1] textbox "Mail" required value="a@b.test" description="Work address" box=[0, 100, 100, 30]',
            '      [2] checkbox "News" checked box=[0, 140, 100, 30]',
            '      button "Send" disabled',
            '      [3] button "More" collapsed box=[0, 220, 100, 30]',
            "    list",
            "      listitem",
            '        [4] link "Terms" url=/terms?x=1 box=[0, 260, 100, 30]',
            "    [5] generic box=[0, 300, 100, 30]",
            '      text "Only clicked"',
            "  frame",
            '    document "Inside"',
            '      [6] button "Framed" box=[0, 340, 100, 30]',
        ]
        assert [each.text for each in seen["/"].elements] == [
            "Mail: a@b.test",
            "News (checked)",
            "More",
            "Terms",
            "Only clicked",
            "Framed",
        ]
        assert '\n  [1] a "first" box=' in seen["/huge"].accessibility_tree


async def test_rich_without_marks_has_places_but_no_numbers() -> None:
    async with views("/", rich=True, marks=False) as seen:
        assert '      checkbox "News" checked box=[0, 140, 100, 30]' in seen["/"].accessibility_tree.split("\n")
        assert "    generic box=[0, 300, 100, 30]" in seen["/"].accessibility_tree.split("\n")


async def test_a_frame_that_goes_between_marks_and_tree_is_left_out() -> None:
    context = ContextConfig(interaction_mode="set_of_marks", accessibility_tree=True)
    async with (
        PlaywrightBrowser(BrowserConfig(), EnvConfig(use_rich_actree=True), context) as browser,
        browser.session(Opening(url=f"{ORIGIN}/framed", site=SITE, quiet_s=0.0)) as session,
    ):
        await session.open()
        assert [each.text for each in (await session.view()).elements] == ["Own", "Framed"]
        tab, observer = await session._windows.active(), session._observer
        await observer.elements.read(tab)
        await tab.page.evaluate("document.querySelector('iframe').remove()")
        assert '[1] button "Own" box=' in await observer._accessibility.text(tab, numbered=True)
