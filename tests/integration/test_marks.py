"""Marks in a real Chromium: which elements get one, where they are drawn, and what a number means later."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from PIL import Image

from browser_workers.browser import Opening, View
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.elements import Elements
from browser_workers.chromium.session import PlaywrightSession
from browser_workers.chromium.tab import Tab
from browser_workers.observation.marks import colour_of
from browser_workers.site import HTML, SiteRequest, SiteResponse
from schemas.browser_config import BrowserConfig
from schemas.context_config import ContextConfig
from schemas.env_config import EnvConfig
from schemas.messages import Element
from tests.support.browsers.patience import wait_for_pages

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
ORIGIN = "http://marks.test"
SIZE = (400, 300)
HEAD = "<!doctype html><title>marks</title><style>body{margin:0;font:16px sans-serif}.at{position:absolute}</style>"


class Pages:
    """A site that tests write as they go."""

    origin = ORIGIN

    def __init__(self) -> None:
        self.documents: dict[str, str] = {}

    def respond(self, request: SiteRequest) -> SiteResponse:
        return SiteResponse(self.documents.get(request.path, "").encode(), content_type=HTML)


PAGES = Pages()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_pages(monkeypatch)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    config = BrowserConfig(viewport_width=SIZE[0], viewport_height=SIZE[1], screenshot_format="png")
    async with PlaywrightBrowser(config, EnvConfig(), ContextConfig(interaction_mode="set_of_marks")) as browser:
        yield browser


@asynccontextmanager
async def opened(browser: PlaywrightBrowser, body: str, **others: str) -> AsyncIterator[PlaywrightSession]:
    PAGES.documents = {"/": HEAD + body, **{f"/{name}": HEAD + inner for name, inner in others.items()}}
    async with browser.session(Opening(url=f"{ORIGIN}/", site=PAGES, quiet_s=0.0)) as session:
        await session.open()
        yield session


class Marked:
    """The elements of one tab, as they were read last."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        self.all: tuple[Element, ...] = ()
        self._elements = Elements()

    async def read(self) -> None:
        await self._elements.find_listeners(self.tab)
        self.all = await self._elements.read(self.tab)

    @property
    def named(self) -> list[tuple[str, str]]:
        return [(each.tag, each.text) for each in self.all]

    async def point(self, number: int) -> tuple[int, int] | str:
        return await self._elements.point_of_element(self.tab, number)

    async def click(self, number: int) -> str:
        """The page's title afterwards."""
        point = await self.point(number)
        assert isinstance(point, tuple), point
        await self.tab.page.mouse.click(*point)
        return await self.tab.value_of("document.title")


@asynccontextmanager
async def marked(browser: PlaywrightBrowser, body: str, **others: str) -> AsyncIterator[Marked]:
    async with opened(browser, body, **others) as session:
        found = Marked(await session._windows.settled())
        await found.read()
        yield found


def pixel(view: View, x: int, y: int) -> tuple[int, ...]:
    with Image.open(io.BytesIO(view.screenshot.data)) as image:
        colour = image.convert("RGB").getpixel((x, y))
    assert isinstance(colour, tuple)
    return colour


# which elements -------------------------------------------------------------------------------------------------------


async def test_every_kind_of_control_with_its_name(browser: PlaywrightBrowser) -> None:
    body = """<style>body *{display:block;margin:0}</style>
    <a href=/x>A   link</a><button aria-label="Search"><svg width=9 height=9></svg></button>
    <label for=mail>Mail</label><input id=mail value="a@b.test"><input placeholder="City">
    <input type=password placeholder="Secret" value="hunter2">
    <input type=checkbox checked aria-label="News"><select title="Colour"><option>red<option selected>blue</select>
    <input type=submit><a href=/y><img alt="Screenshot" width=9 height=9></a><div role=tab tabindex=0>Tab</div>
    <div contenteditable>Editable</div><p>No control</p>"""
    async with marked(browser, body) as found:
        assert found.named == [
            ("a", "A link"),
            ("button", "Search"),
            ("input[type=text]", "Mail: a@b.test"),
            ("input[type=text]", "City"),
            ("input[type=password]", "Secret"),
            ("input[type=checkbox]", "News (checked)"),
            ("select", "Colour: blue"),
            ("input[type=submit]", "Submit"),
            ("a", "Screenshot"),
            ("div[role=tab]", "Tab"),
            ("div", "Editable"),
        ]
        assert [each.id for each in found.all] == list(range(1, 12))


async def test_numbers_follow_the_reading_order(browser: PlaywrightBrowser) -> None:
    places = {"d": (0, 100), "b": (100, 3), "a": (0, 0), "c": (200, 0), "e": (150, 102)}
    body = "".join(
        f"<button class=at style='left:{x}px;top:{y}px;height:30px'>{name}</button>" for name, (x, y) in places.items()
    )
    async with marked(browser, body) as found:
        assert [each.text for each in found.all] == ["a", "b", "c", "d", "e"]


async def test_what_only_scripts_make_clickable(browser: PlaywrightBrowser) -> None:
    body = """<div id=listens style="height:30px">listens</div><div style="height:30px;cursor:pointer"><b>points</b></div>
    <ul id=many style="margin:0"><li><a href=/1>one</a><li><a href=/2>two</a></ul><p>neither</p>
    <script>listens.addEventListener('click', () => { document.title = 'heard' }); many.onclick = () => {}</script>"""
    async with marked(browser, body) as found:
        assert [each.text for each in found.all] == ["listens", "points", "one", "two"]
        assert await found.click(1) == "heard"


async def test_shadow_roots_and_slots(browser: PlaywrightBrowser) -> None:
    body = """<x-box id=host>slotted</x-box><x-box><i style="display:block;height:20px">italic</i></x-box><script>
    customElements.define('x-box', class extends HTMLElement { constructor() { super();
      this.attachShadow({mode: 'open'}).innerHTML =
        `<button style="padding:0;border:0" onclick="document.title = 'inside'"><slot></slot></button>` +
        `<span><a href=/x>deep</a></span>` } })</script>"""
    async with marked(browser, body) as found:
        names = [("button", "slotted"), ("a", "deep"), ("button", "italic"), ("a", "deep")]
        assert found.named == names
        assert await found.click(1) == "inside"
        await found.tab.value_of("document.title = ''")
        assert await found.click(3) == "inside"


async def test_frames_and_what_they_show(browser: PlaywrightBrowser) -> None:
    inner = """<button class=at style="left:10px;top:5px;width:80px;height:20px">in</button>
    <button class=at style="top:500px">below</button>
    <iframe srcdoc="<button>deepest</button>" class=at style="top:40px"></iframe>
    <script>document.querySelector('button').onclick = () => { parent.document.title = 'framed' }</script>"""
    style = "left:50px;top:60px;width:300px;height:100px;border:2px solid;padding:3px"
    body = f"<iframe class=at src=/inner style='{style}'></iframe>"
    async with marked(browser, body, inner=inner) as found:
        assert [each.text for each in found.all] == ["in", "deepest"]
        assert found.all[0].box == (65, 70, 80, 20)
        assert await found.click(1) == "framed"


async def test_frames_of_another_origin(browser: PlaywrightBrowser) -> None:
    consent = f"{HEAD}<button class=at style='left:20px;top:10px' onclick='this.textContent = \"agreed\"'>Agree</button>"
    below = "<button class=at style='left:120px;top:10px'>covered</button><button class=at style='top:500px'>below</button>"
    frame = "<iframe class=at src=http://consent.test/{} style='left:0;top:{}px;width:200px;height:80px;border:0'></iframe>"
    cover = "<div class=at style='left:100px;top:50px;width:100px;height:80px;background:#ccc'></div>"
    body = frame.format("full", 50) + cover + frame.format("empty", 200) + "<div style='height:2000px'></div>"
    async with opened(browser, "") as session:
        await session.context.route(
            "http://consent.test/**",
            lambda route: route.fulfill(body=consent + below if "full" in route.request.url else "", content_type="text/html"),
        )
        PAGES.documents = {"/framed": HEAD + body}
        found = Marked(await session._windows.settled())
        await found.tab.navigate(f"{ORIGIN}/framed")
        await found.read()
        # Where nothing is found inside, the frame stands for itself.
        assert found.named == [("button", "Agree"), ("iframe", "")]
        assert found.all[0].box[:2] == (20, 60)
        await found.tab.value_of("scrollTo(0, 1000)")
        await found.click(1)
        await found.read()
        assert found.named[0] == ("button", "agreed")


async def test_what_cannot_be_clicked_has_no_mark(browser: PlaywrightBrowser) -> None:
    body = """<style>.at{width:100px;height:30px}</style>
    <button class=at style="top:0">free</button>
    <button class=at style="top:40px">covered</button><div class=at style="top:40px;background:#ccc"></div>
    <button class=at style="top:290px">below the fold</button><button class=at style="left:-90px">left of it</button>
    <button class=at style="left:0;top:0;width:400px;height:290px;z-index:-1;opacity:.5">huge</button>
    <button class=at style="top:80px" disabled>disabled</button>
    <button class=at style="top:120px;visibility:hidden">hidden</button>
    <button class=at style="top:160px;opacity:0">transparent</button><input type=hidden value=x>
    <button class=at style="top:200px;pointer-events:none">untouchable</button>
    <button class=at style="left:200px;top:0">half<div class=at style="left:0;top:0;width:45px;background:red"></div></button>
    <div class=at style="left:200px;top:100px;overflow:hidden"><button class=at style="top:60px">clipped</button></div>"""
    async with marked(browser, body) as found:
        assert [each.text for each in found.all] == ["free", "half"]


async def test_one_mark_for_one_thing(browser: PlaywrightBrowser) -> None:
    body = """<style>.at{width:150px;height:40px}</style>
    <a class=at href=/1 style="top:0"><span style="cursor:pointer" onclick="0">span in a link</span></a>
    <div class=at role=button style="top:50px"><button style="width:150px;height:40px">button in a button</button></div>
    <label class=at style="top:100px"><input type=checkbox>seen box</label>
    <label class=at style="top:150px"><input type=checkbox style="display:none">hidden box</label>
    <div class=at style="top:200px;height:80px;cursor:pointer">card
    <button class=at style="left:100px;width:40px">x</button></div>"""
    async with marked(browser, body) as found:
        assert found.named == [
            ("a", "span in a link"),
            ("button", "button in a button"),
            ("input[type=checkbox]", "seen box"),
            ("label", "hidden box"),
            ("button", "x"),
            ("div", "card x"),
        ]


async def test_a_page_neither_sees_nor_influences_it(browser: PlaywrightBrowser) -> None:
    body = """<button>honest</button><form onclick="0" style="height:40px">
      <input name=getBoundingClientRect style="width:60px"><input name=parentNode style="width:60px">
      <input name=localName style="width:60px"></form><img name=elementFromPoint><img name=defaultView>
    <script>
    window.seen = window.before = 0
    new MutationObserver((changes) => { seen += changes.length })
      .observe(document, {subtree: true, childList: true, attributes: true, characterData: true})
    for (const kind of [Element, Node, Document, Array, WeakRef, WeakMap, Map])
      for (const name of Object.getOwnPropertyNames(kind.prototype)) {
        const own = Object.getOwnPropertyDescriptor(kind.prototype, name)
        if (name !== 'constructor' && own.configurable && typeof own.value === 'function')
          Object.defineProperty(kind.prototype, name, {...own, value() { seen += 1; return own.value.apply(this, arguments) }})
      }
    window.before = Object.getOwnPropertyNames(window).length
    </script>"""
    async with opened(browser, body) as session:
        view = await session.view()
        after = await session.page_values(["seen", "Object.getOwnPropertyNames(window).length - before"])
    assert [each.text for each in view.elements][:1] == ["honest"]
    assert [each.tag for each in view.elements][1:] == ["input[type=text]"] * 3
    assert after == ("0", "0")


async def test_a_page_with_very_many_elements(browser: PlaywrightBrowser) -> None:
    body = "<script>document.write('<p><a href=/x>link</a>'.repeat(30000))</script>"
    async with opened(browser, body) as session:
        view = await session.view()
    assert 5 < len(view.elements) < 20
    assert {each.text for each in view.elements} == {"link"}


@pytest.mark.parametrize(
    ("now", "complete"),
    [("asks < 20 ? 0 : 600_000", True), ("100 * asks", False)],
    ids=["stands still once", "is slow all along"],
)
async def test_a_reading_s_budget_is_spent_on_its_steps(browser: PlaywrightBrowser, now: str, complete: bool) -> None:
    """A process that stands still has read nothing meanwhile."""
    async with marked(browser, "<button>more</button>" * 40) as found:
        whole, world = found.all, found._elements._reading(found.tab).document.world
        await world.value(f"(() => {{ let asks = 0; performance.now = () => (asks += 1, {now}) }})()")
        await found.read()
        assert (found.all == whole) is (found._elements.size(found.tab) is not None) is complete


async def test_numbers_end_where_a_screenshot_is_full(browser: PlaywrightBrowser) -> None:
    body = "<style>a{float:left;width:9px;height:9px;overflow:hidden}</style>" + "<a href=/x>x</a>" * 1400
    async with opened(browser, body) as session:
        view = await session.view()
    assert [each.id for each in view.elements] == list(range(1, 501))


# the screenshot ----------------------------------------------------------------------------------------------------------

SQUARES = """<style>body{background:#88a} a{position:absolute;width:100px;height:60px;background:#dd3}</style>
<a href=/1 style="left:20px;top:0"></a><a href=/2 style="left:200px;top:120px"></a>"""


async def test_labels_stand_at_the_top_right_or_below_at_the_screenshot_s_edge(browser: PlaywrightBrowser) -> None:
    async with opened(browser, SQUARES) as session:
        view = await session.view()
    assert [each.box for each in view.elements] == [(20, 0, 100, 60), (200, 120, 100, 60)]
    # Left of the figure, in the label's own padding.
    assert pixel(view, 120 - 3, 60 + 8) == colour_of(1)
    assert pixel(view, 300 - 3, 120 - 8) == colour_of(2)
    assert pixel(view, 200, 150) == colour_of(2)
    assert pixel(view, 250, 150) == (0xDD, 0xDD, 0x33)
    assert pixel(view, 350, 250) == (0x88, 0x88, 0xAA)


async def test_equal_pages_give_equal_bytes_and_others_do_not(browser: PlaywrightBrowser) -> None:
    async with opened(browser, SQUARES) as session:
        first, second = await session.view(), await session.view()
        await session.page_values(["document.querySelector('a').style.left = '30px'"])
        third = await session.view()
    assert first.screenshot == second.screenshot
    assert third.screenshot != second.screenshot


async def test_a_blank_page_is_blank_whatever_is_drawn_on_it(browser: PlaywrightBrowser) -> None:
    async with opened(browser, "<a href=/x style='display:block;width:50px;height:50px'></a>") as session:
        view = await session.view()
    assert view.blank
    assert len(view.elements) == 1
    assert pixel(view, 0, 25) == colour_of(1)


# what a number means later --------------------------------------------------------------------------------------------

BUTTONS = """<style>button{width:100px;height:30px}</style>
<button class=at style="top:0" onclick="document.title = 'one'">one</button>
<button class=at style="top:50px" onclick="document.title = 'two'">two</button>"""


async def test_an_element_that_moved_is_found_where_it_is(browser: PlaywrightBrowser) -> None:
    async with marked(browser, BUTTONS) as found:
        assert await found.point(2) == (50, 65)
        await found.tab.value_of("document.querySelectorAll('button')[1].style.left = '200px'")
        assert await found.point(2) == (250, 65)
        assert await found.click(2) == "two"


async def test_an_element_out_of_view_is_scrolled_to(browser: PlaywrightBrowser) -> None:
    body = BUTTONS + "<div style='height:5000px'></div>"
    async with marked(browser, body) as found:
        await found.tab.value_of("document.body.append(document.querySelectorAll('button')[1])")
        await found.tab.value_of("document.body.lastChild.style.top = '3000px'")
        assert await found.click(2) == "two"


async def test_an_element_in_a_frame_out_of_view_is_scrolled_to(browser: PlaywrightBrowser) -> None:
    inner = "<div style='height:2000px'></div><button onclick=\"parent.document.title = 'framed'\">in</button>"
    body = "<div style='height:1500px'></div><iframe src=/inner style='height:100px'></iframe>"
    async with marked(browser, body, inner=inner) as found:
        assert not found.all
        await found.tab.value_of("scrollTo(0, 9999), frames[0].scrollTo(0, 9999)")
        await found.read()
        assert [each.text for each in found.all] == ["in"]
        await found.tab.value_of("scrollTo(0, 0), frames[0].scrollTo(0, 0)")
        assert await found.click(1) == "framed"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("two.remove()", 'element 2 (button "two") is not in the page any more'),
        ("two.style.display = 'none'", 'element 2 (button "two") is not shown any more'),
        ("two.disabled = true", 'element 2 (button "two") is disabled now'),
        (
            "two.insertAdjacentHTML('afterend', '<p class=at style=\"inset:0;margin:0\" role=dialog>Wait</p>')",
            'element 2 (button "two") is covered by p[role=dialog] "Wait"',
        ),
    ],
)
async def test_an_element_that_cannot_be_reached_any_more(browser: PlaywrightBrowser, change: str, sentence: str) -> None:
    async with marked(browser, BUTTONS) as found:
        await found.tab.value_of(f"((two) => {{ {change} }})(document.querySelectorAll('button')[1])")
        assert await found.point(2) == sentence
        assert await found.point(3) == "there is no element 3: the last screenshot has marks 1 to 2"


async def test_numbers_end_with_their_document(browser: PlaywrightBrowser) -> None:
    async with marked(browser, BUTTONS, second=BUTTONS) as found:
        await found.tab.navigate(f"{ORIGIN}/second")
        assert await found.point(1) == 'element 1 (button "one") is not there any more: the page was left'
        await found.read()
        assert await found.click(1) == "one"
