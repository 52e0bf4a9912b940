"""What the policy is told of its own actions, by real pages: honest ones, and ones that forge or hide."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.abc
import pytest

from browser_workers.browser import Opening, Performed
from browser_workers.chromium import effect_observer, evaluation, navigation
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.session import PlaywrightSession
from browser_workers.chromium.tab import Tab
from browser_workers.site import Documents, SiteRequest, SiteResponse
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig
from schemas.messages import Action, ActionKind
from tests.deadlines import HANGS_S
from tests.support.browsers.patience import wait_for_pages
from tests.support.closed_port import closed_port

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
ORIGIN = "http://pages.test"
SIZE = (400, 300)
LAYOUT = "<!doctype html><title>t</title><style>body{margin:0}.r{position:absolute;left:0;width:400px;height:40px}</style>"
NOTHING = ("nothing changed in the page's document",)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    config = BrowserConfig(viewport_width=SIZE[0], viewport_height=SIZE[1], private_hosts=("127.0.0.0/8",))
    async with PlaywrightBrowser(config, EnvConfig()) as browser:
        yield browser


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_pages(monkeypatch)


@asynccontextmanager
async def on(browser: PlaywrightBrowser, body: str, **others: str) -> AsyncIterator[PlaywrightSession]:
    """A session on a page of rows 50 px apart, which clicks at 20, 70, 120, ... hit."""
    documents = {"/": (LAYOUT + body).encode(), **{f"/{name}": (LAYOUT + text).encode() for name, text in others.items()}}
    async with browser.session(Opening(url=f"{ORIGIN}/", site=Documents(ORIGIN, documents), quiet_s=0.05)) as session:
        session.context.set_default_timeout(1000 * HANGS_S)
        await session.open()
        yield session


def row(index: int) -> tuple[float, float]:
    return 100 / SIZE[0] * 1000, (20 + 50 * index) / SIZE[1] * 1000


async def click(session: PlaywrightSession, index: int) -> Performed:
    return await session.perform(Action(kind=ActionKind.CLICK, point=row(index)))


def at(index: int, tag: str, attributes: str = "", text: str = "") -> str:
    return f"<{tag} class=r style='top:{50 * index}px' {attributes}>{text}</{tag}>"


@pytest.mark.parametrize(
    ("html", "hit"),
    [
        (at(0, "button", "", "<b>Save</b> all"), 'button "Save all"'),
        (at(0, "button", "disabled", "Save"), 'disabled button "Save"'),
        (at(0, "a", "href='#x'", "Next page"), 'link "Next page"'),
        (at(0, "input", "placeholder=Search"), 'text field "Search"'),
        (at(0, "input", "type=submit value=Go"), 'button "Go"'),
        (at(0, "input", "type=password aria-label=Secret value=hunter2"), 'password field "Secret"'),
        ("<label for=s>Size</label>" + at(0, "select", "id=s", "<option>S"), 'select "Size"'),
        (at(0, "div", "role=tab", "Details"), 'tab "Details"'),
        (at(0, "div", "role=button aria-label=Close", "<svg width=400 height=40></svg>"), 'button "Close"'),
        (at(0, "a", "href='#x'", "<img alt=Basket width=400 height=40>"), 'link "Basket"'),
        (at(0, "div", "", "words"), "nothing interactive (div)"),
        (at(0, "div", "tabindex=0", "words"), 'clickable div "words"'),
        ("", "nothing interactive (the page itself)"),
        (at(0, "iframe", "srcdoc='<body style=margin:0><button style=\"width:400px;height:40px\">In'"), 'button "In"'),
        (
            "<iframe style='border:0;padding:8px;width:400px;height:100px;transform:scale(.5);transform-origin:0 0' srcdoc='"
            '<body style=margin:0><button style="width:400px;height:30px">Above</button><button style="width:400px">Below\'>',
            'button "Below"',
        ),
        (at(0, "iframe", "src='http://other.test/x'"), "frame of other.test"),
        (at(0, "label", "", "I agree <input type=checkbox>"), 'checkbox "I agree"'),
        (
            at(0, "div", "id=host")
            + "<script>host.attachShadow({mode:'open'}).innerHTML='<button style=\"width:400px;height:40px\">Deep'</script>",
            'button "Deep"',
        ),
    ],
)
async def test_what_a_click_hits(browser: PlaywrightBrowser, html: str, hit: str) -> None:
    async with on(browser, html) as session:
        assert (await click(session, 0)).hit == hit


CHANGES = {
    "nothing": (at(0, "button", "", "b"), ("focus",)),
    "checked": (at(0, "input", "type=checkbox aria-label='I agree'"), ('checkbox "I agree" checked',)),
    "unchecked": (at(0, "input", "type=checkbox checked aria-label=A"), ('checkbox "A" unchecked',)),
    "radio": (at(0, "input", "type=radio name=n aria-label=Large"), ('radio button "Large" selected',)),
    "focus": (
        at(0, "div", "onmousedown='event.preventDefault();f.focus()'", "x") + at(1, "input", "id=f aria-label=Name"),
        ('focus moved to text field "Name"',),
    ),
    "script": (
        at(0, "div", "onclick='f.value=\"shoes\"'", "x") + at(1, "input", "id=f aria-label=Search"),
        ('field "Search" now holds "shoes"',),
    ),
    "secret": (
        at(0, "div", "onclick='f.value=\"hunter2\"'", "x") + at(1, "input", "type=password id=f aria-label=Key"),
        ('password field "Key" was filled in',),
    ),
    "shown secret": (
        at(0, "div", 'onclick=\'f.value="hunter2";f.type="text"\'', "x") + at(1, "input", "type=password id=f aria-label=Key"),
        ('text field "Key" was filled in',),
    ),
    "select": (
        at(0, "div", "onclick='f.selectedIndex=1'", "x") + at(1, "select", "id=f aria-label=Size", "<option>S<option>Large"),
        ('select "Size" now shows "Large"',),
    ),
    "dialog": (
        at(0, "div", "onclick='d.showModal()'", "x") + "<dialog id=d><h2>Cookie settings</h2></dialog>",
        ('dialog "Cookie settings" appeared',),
    ),
    "added": (
        at(0, "div", "onclick='o.innerHTML=\"<li><i></i>\".repeat(6)'", "x") + "<ul id=o></ul>",
        ("12 elements were added",),
    ),
    "many": (
        at(0, "div", "onclick='o.innerHTML=\"<li><i></i>\".repeat(3000)'", "x") + "<ul id=o></ul>",
        ("at least 1000 elements were added",),
    ),
    "removed": (at(0, "div", "onclick='o.remove()'", "x") + "<p id=o>", ("1 element was removed",)),
    "text": (at(0, "div", "onclick='this.textContent=\"2 items\"'", "1 item"), ('text changed to "2 items"',)),
    "look": (at(0, "div", "onclick='this.className+=\" on\"'", "x"), ("1 element was altered in look or state",)),
    "scrolled": (
        at(0, "div", "onclick='window.scrollTo(0,680)'", "x") + "<p style='height:2000px;margin:0'>",
        ("scrolled to 40 %",),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_what_a_click_changes(browser: PlaywrightBrowser, name: str) -> None:
    html, expected = CHANGES[name]
    async with on(browser, html) as session:
        changes = (await click(session, 0)).changes
    if name == "nothing":
        assert changes == ()  # the focus moved to the button, which is what was hit
    else:
        for phrase in expected:
            assert any(phrase in each for each in changes), changes
    assert "hunter2" not in " ".join(changes)


async def test_nothing_is_only_said_where_everything_was_seen(browser: PlaywrightBrowser) -> None:
    async with on(browser, at(0, "div", "", "x")) as session:
        assert (await click(session, 0)).changes == NOTHING
    closed = "<script>host.attachShadow({mode:'closed'}).innerHTML='<p>x'</script>"
    for blind in ("<canvas>", "<iframe src='http://other.test/'></iframe>", "<own-part id=host></own-part>" + closed):
        async with on(browser, at(0, "div", "", "x") + blind) as session:
            assert (await click(session, 0)).changes == ()


async def test_nothing_is_not_said_where_the_watch_was_over_before_the_input(
    browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "_SCRIPT", re.sub(r"\bWATCH_MS = \d+", "WATCH_MS = 0", evaluation._SCRIPT))
    assert "WATCH_MS = 0;" in evaluation._SCRIPT
    async with on(browser, at(0, "div", "onclick='title = 1'", "x")) as session:
        assert (await click(session, 0)).changes != NOTHING


async def test_typing_and_its_result(browser: PlaywrightBrowser) -> None:
    fields = at(0, "input", "aria-label=Search") + at(1, "input", "type=password aria-label=Key")
    async with on(browser, fields) as session:
        for index, text, kind in ((0, "shoes", "text field"), (1, "hunter2", "password field")):
            performed = await session.perform(Action(kind=ActionKind.TYPE, point=row(index), text=text))
            assert performed.hit.startswith(kind)
            assert "hunter2" not in str(performed)
            expected = 'field "Search" now holds "shoes"' if index == 0 else 'password field "Key" was filled in'
            assert expected in performed.changes
        performed = await session.perform(Action(kind=ActionKind.TYPE, text="more"))
        assert performed.hit == 'password field "Key"'


@pytest.mark.parametrize("late_ms", [100, 0])
async def test_scrolling_says_how_far(browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch, late_ms: int) -> None:
    """However late the frames come that show it."""
    assert "LATE_FRAME_MS = 100," in evaluation._SCRIPT
    monkeypatch.setattr(evaluation, "_SCRIPT", evaluation._SCRIPT.replace("LATE_FRAME_MS = 100", f"LATE_FRAME_MS = {late_ms}"))
    monkeypatch.setattr(effect_observer, "_PAGE_CAP_MS", 1000 * HANGS_S)
    async with on(browser, "<p style='height:900px;margin:0'>") as session:
        performed = await session.perform(Action(kind=ActionKind.SCROLL))
        assert (performed.hit, performed.changes) == ("", ("scrolled to 50 %",))
        performed = await session.perform(Action(kind=ActionKind.SCROLL, direction="up"))
        assert performed.changes == ("scrolled to 0 %",)
        assert (await session.perform(Action(kind=ActionKind.SCROLL, direction="up"))).changes == NOTHING


async def test_a_link_is_named_though_its_page_is_gone(browser: PlaywrightBrowser) -> None:
    async with on(browser, at(0, "a", "href=/two", "Two"), two="<p>2") as session:
        performed = await click(session, 0)
        assert (performed.hit, performed.changes) == ('link "Two"', ("another document was loaded",))
        assert await session.perform(Action(kind=ActionKind.GO_BACK)) == Performed(num_documents=1)


FORGERY = """<script>
  JSON.stringify = () => '["http://bank.test/","forged",200,"button \\\\"Fake\\\\"",[]]';
  Object.defineProperty(document, 'title', { get: () => 'forged' });
  EventTarget.prototype.addEventListener = function () {};
  Element.prototype.matches = () => false;
  Document.prototype.elementFromPoint = () => null;
  Object.defineProperty(HTMLInputElement.prototype, 'value', { get: () => 'forged' });
  window.MutationObserver = window.Promise = window.requestAnimationFrame = window.setTimeout = undefined;
  Array.prototype.slice = Array.prototype.push = () => ['forged'];
  window.stolen = Object.getOwnPropertyNames(window).filter((name) => /millrace/i.test(name)).join();
</script>"""
SWALLOW = """<script>
  for (const kind of ['pointerdown', 'mousedown', 'click', 'keydown', 'input', 'change', 'focus']) {
    addEventListener(kind, (event) => { event.stopImmediatePropagation(); }, true);
  }
  document.open(); document.write('<title>t</title><style>body{margin:0}.r{position:absolute;width:400px;height:40px}</style>'
    + '<button class=r style=top:0>Real</button><input class=r style=top:50px aria-label=Field>'); document.close();
</script>"""


async def test_a_page_cannot_forge(browser: PlaywrightBrowser) -> None:
    page = (
        FORGERY + at(0, "button", "onclick='o.hidden = !o.hidden'", "Real") + at(1, "input", "aria-label=Field") + "<p id=o>"
    )
    async with on(browser, page) as session:
        performed = await click(session, 0)
        assert performed.hit == 'button "Real"'
        assert performed.changes == ("1 element was altered in look or state",)
        typed = await session.perform(Action(kind=ActionKind.TYPE, point=row(1), text="mine"))
        assert 'field "Field" now holds "mine"' in typed.changes
        state = await session.state()
        assert (state.url, state.title) == (f"{ORIGIN}/", "t")
        seen = "Object.getOwnPropertyNames(window).filter((name) => /millrace/i.test(name)).length + stolen.length"
        assert await session.page_values([seen]) == ("0",)


async def test_a_page_cannot_hide(browser: PlaywrightBrowser) -> None:
    async with on(browser, SWALLOW) as session:
        assert (await click(session, 0)).hit == 'button "Real"'
        typed = await session.perform(Action(kind=ActionKind.TYPE, point=row(1), text="mine"))
        assert typed.hit == 'text field "Field"'
        assert 'field "Field" now holds "mine"' in typed.changes


async def test_a_storm_and_a_huge_document_cost_little(browser: PlaywrightBrowser) -> None:
    storm = at(0, "button", "onclick='for (let i = 0; i < 30000; i++) o.append(document.createElement(\"i\"))'", "Go")
    huge = "<div id=o></div><section>" + "<p><b>x</b></p>" * 8000 + "</section>"
    async with on(browser, storm + huge) as session:
        with anyio.fail_after(HANGS_S):
            performed = await click(session, 0)
        assert performed.hit == 'button "Go"'
        assert any("at least" in phrase and "added" in phrase for phrase in performed.changes), performed.changes


# why a navigation failed ----------------------------------------------------------------------------------------------


class Answering:
    """A site whose paths name the status that they answer with."""

    origin = ORIGIN

    def respond(self, request: SiteRequest) -> SiteResponse:
        return SiteResponse(status=int(request.path[1:] or 200), body=b"<!doctype html><title>t</title><p>said")


async def test_the_status_of_a_document_is_said_once(browser: PlaywrightBrowser) -> None:
    async with browser.session(Opening(url=f"{ORIGIN}/404", site=Answering(), quiet_s=0.0)) as session:
        assert (await session.open()).notice == "the site answered 404"
        assert (await session.perform(Action(kind=ActionKind.HOVER, point=(1, 1)))).notice == ""
        for status, notice in ((503, "the site answered 503"), (200, "")):
            performed = await session.perform(Action(kind=ActionKind.NAVIGATE, text=f"{ORIGIN}/{status}"))
            assert (performed.navigation_error, performed.notice) == ("", notice)


async def _misbehave(stream: anyio.abc.SocketStream) -> None:
    """Redirects in a circle, says nothing, or says what is not HTTP."""
    async with stream:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            request = await stream.receive()
            if request.startswith(b"GET /circle "):
                await stream.send(b"HTTP/1.1 302 Found\r\nLocation: /circle\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            elif request.startswith(b"GET /nothing "):
                await stream.send(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
            elif request.startswith(b"\x16"):
                await stream.send(b"this is no TLS\r\n")


async def test_why_a_page_cannot_be_reached(browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(navigation, "LOAD_CAP_S", HANGS_S)
    with closed_port() as closed:
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
            anyio.create_task_group() as group,
            on(browser, "") as session,
        ):
            group.start_soon(listener.serve, _misbehave)
            site, refusing = f"127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}", f"127.0.0.1:{closed}"
            expected = {
                f"http://{site}/circle": "it redirects in a circle",
                f"http://{site}/silent": "the site closed the connection without an answer",
                f"http://{site}/nothing": "it led to no page",
                f"https://{site}/": "(TLS)",
                f"http://{refusing}/": f"{refusing} refused the connection",
                "http://nowhere.invalid/": "no address is known for nowhere.invalid",
            }
            for url, reason in expected.items():
                performed = await session.perform(Action(kind=ActionKind.NAVIGATE, text=url))
                assert performed.navigation_error.startswith(f"{url} could not be reached: "), performed
                assert reason in performed.navigation_error
            group.cancel_scope.cancel()


async def test_a_window_that_opens_meanwhile_hides_no_failed_navigation(
    browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    navigate = Tab.navigate
    async with on(browser, "") as session:
        await session.perform(Action(kind=ActionKind.NEW_TAB))

        async def then_a_window(tab: Tab, url: str) -> None:
            await navigate(tab, url)
            async with session.context.expect_page():
                await session.context.pages[0].evaluate("() => { open('/') }")

        monkeypatch.setattr(Tab, "navigate", then_a_window)
        with closed_port() as closed:
            performed = await session.perform(Action(kind=ActionKind.NAVIGATE, text=f"http://127.0.0.1:{closed}/"))
    assert "refused the connection" in performed.navigation_error
    assert performed.notice == "a new window was opened"
