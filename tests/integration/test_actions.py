"""Every action by its effect on a page in a real Chromium."""

from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel
import pytest

from browser_workers.browser import Opening, Performed
from browser_workers.chromium import effect_observer, windows
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.session import PlaywrightSession
from browser_workers.chromium.tab import Tab
from browser_workers.site import Documents
from schemas.context_config import ContextConfig
from schemas.env_config import EnvConfig
from schemas.messages import Action, ActionKind, BrowserTab, Screenshot
from tests.deadlines import HANGS_S
from tests.support.browsers.browser_pages import ORIGIN, at, click, opening_of, page, press, small, title
from tests.support.browsers.patience import wait_for_pages

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

LOG = "<script>const log = (text) => { document.title = document.title.replace('page', '').concat(' ', text).trim() }</script>"
STYLE = "<style>.row { position: absolute; left: 0; width: 400px; height: 40px }</style>"


def row(y: int, tag: str, attributes: str = "", content: str = "") -> str:
    return f"<{tag} class=row style='top:{y}px' {attributes}>{content}</{tag}>"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    async with PlaywrightBrowser(small(), EnvConfig()) as browser:
        yield browser


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_pages(monkeypatch)


async def value(session: PlaywrightSession, expression: str) -> str:
    (found,) = await session.page_values([expression])
    return found


async def test_the_buttons_of_the_mouse(browser: PlaywrightBrowser) -> None:
    body = LOG + row(0, "div", "onclick='log(`click`)' ondblclick='log(`double`)' oncontextmenu='log(`menu`)'")
    async with browser.session(opening_of(STYLE + body)) as session:
        await session.open()
        await session.perform(click(100, 20))
        assert await title(session) == "click"
        await session.perform(Action(kind=ActionKind.DOUBLE_CLICK, point=at(100, 20)))
        assert await title(session) == "click click click double"
        await session.perform(Action(kind=ActionKind.RIGHT_CLICK, point=at(100, 20)))
        assert await title(session) == "click click click double menu"


POINTER_DRAG = """
<div id=box style="position:absolute;width:50px;height:50px;background:red"></div><script>
box.onpointerdown = (down) => { box.setPointerCapture(down.pointerId); box.onpointermove = (move) => {
  box.style.left = `${move.clientX - 25}px`; box.style.top = `${move.clientY - 25}px` } }
box.onpointerup = () => { box.onpointermove = null; document.title = `${box.style.left} ${box.style.top}` }
</script>"""
HTML5_DRAG = """
<div draggable=true style="position:absolute;width:50px;height:50px;background:red"
  ondragstart="event.dataTransfer.setData('text/plain', 'box')"></div>
<div style="position:absolute;left:200px;top:100px;width:100px;height:100px;background:blue"
  ondragover="event.preventDefault()" ondrop="document.title = 'dropped ' + event.dataTransfer.getData('text/plain')"></div>"""
SLIDER = """<input type=range min=0 max=100 value=0 style="position:absolute;margin:0;left:0;width:400px;height:40px"
  onchange="document.title = this.value > 45 && this.value < 55 ? 'middle' : this.value">"""


@pytest.mark.parametrize(
    ("body", "start", "end", "expected"),
    [
        (POINTER_DRAG, (25, 25), (225, 125), "200px 100px"),
        (HTML5_DRAG, (25, 25), (250, 150), "dropped box"),
        (SLIDER, (8, 20), (200, 20), "middle"),
    ],
    ids=["pointer", "html5", "slider"],
)
async def test_drag(
    browser: PlaywrightBrowser, body: str, start: tuple[int, int], end: tuple[int, int], expected: str
) -> None:
    async with browser.session(opening_of(body)) as session:
        await session.open()
        await session.perform(Action(kind=ActionKind.DRAG, point=at(*start), end_point=at(*end)))
        assert await title(session) == expected


async def test_type_replaces_and_presses_enter_where_it_is_asked_to(browser: PlaywrightBrowser) -> None:
    body = LOG + row(0, "input", "value=old autofocus onkeydown='if (event.key === `Enter`) log(this.value)'")
    async with browser.session(opening_of(STYLE + body)) as session:
        await session.open()
        await session.perform(Action(kind=ActionKind.TYPE, point=at(100, 20), text="hello Wörld", enter=False))
        assert await title(session) == "page"
        assert await value(session, "document.querySelector('input').value") == "hello Wörld"
        await session.perform(Action(kind=ActionKind.TYPE, text="日本"))
        assert await title(session) == "日本"
        await session.perform(Action(kind=ActionKind.TYPE, text="", enter=False))
        assert await value(session, "document.querySelector('input').value") == ""


async def test_press(browser: PlaywrightBrowser) -> None:
    body = LOG + row(0, "input", "value=abc autofocus onkeydown='log(event.key)'") + "<div style='height:3000px'>"
    async with browser.session(opening_of(STYLE + body)) as session:
        await session.open()
        await session.perform(press("End", "x", "ctrl+a", "del", "Q", "esc"))
        assert await title(session) == "End x Control a Delete Q Escape"
        assert await value(session, "document.querySelector('input').value") == "Q"
        await session.perform(click(100, 200))
        await session.perform(press("pagedown"))
        assert float(await value(session, "scrollY")) > 100
        performed = await session.perform(press("Enter", "hyperspace"))
        assert "'hyperspace' is no key: write names such as Enter" in performed.refused
        assert (await session.perform(press())).refused.startswith("press needs keys")


@pytest.mark.parametrize("paste", ["ctrl+v", "cmd+v", "shift+Insert"])
async def test_an_episode_pastes_what_it_has_copied_and_nothing_else(browser: PlaywrightBrowser, paste: str) -> None:
    body = row(0, "input", "value=mine autofocus") + row(50, "textarea") + row(100, "p", "", "some words")
    other = row(0, "input", "autofocus")
    second = "document.querySelector('textarea').value"
    async with (
        browser.session(opening_of(STYLE + body)) as session,
        browser.session(opening_of(STYLE + other)) as neighbour,
    ):
        await session.open()
        await neighbour.open()
        await session.perform(press("ctrl+a", "ctrl+c"))
        await neighbour.perform(press(paste))
        assert await value(neighbour, "document.querySelector('input').value") == ""
        await session.perform(click(100, 70))
        await session.perform(press(paste))
        assert await value(session, second) == "mine"
        await session.perform(Action(kind=ActionKind.DOUBLE_CLICK, point=at(20, 125)))
        await session.perform(press("ctrl+c"))
        await session.perform(click(100, 70))
        await session.perform(press("ctrl+a", "ctrl+v"))
        assert (await value(session, second)).strip() == "some"


async def test_select(browser: PlaywrightBrowser) -> None:
    options = "<option value=1>One<option value=2>Two  or <b>more</b><option value=3 disabled>Three"
    body = LOG + row(0, "select", "oninput='log(`input`)' onchange='log(this.value)'", options) + row(50, "p", "", "text")
    body += row(100, "label", "", "Size <select><option>S<option>L</select>")
    body += row(150, "input", "oninput='log(this.value)'")
    place = at(100, 20)
    async with browser.session(opening_of(STYLE + body)) as session:
        await session.open()

        async def select(text: str, point: tuple[float, float] = place) -> Performed:
            return await session.perform(Action(kind=ActionKind.SELECT, point=point, text=text))

        assert (await select("Two or more")).refused == ""
        assert await title(session) == "input 2"
        await select("1")
        assert await title(session) == "input 2 input 1"
        assert (await select("one")).refused == ""
        assert await title(session) == "input 2 input 1"
        assert 'has no option "Four"; it has "One", "Two or more", "Three"' in (await select("Four")).refused
        assert "disabled" in (await select("Three")).refused
        assert "no native select" in (await select("One", at(100, 70))).refused
        assert (await select("L", at(20, 110))).refused == ""
        assert await value(session, "document.querySelector('label').control.value") == "L"


async def test_the_list_of_a_select_that_a_click_opens_is_said(browser: PlaywrightBrowser) -> None:
    body = LOG + row(0, "select", "onchange='log(this.value)'", "<option>One<option>Two")
    body += row(250, "button", "onclick='log(`button`)'", "button")
    async with browser.session(opening_of(STYLE + body)) as session:
        await session.open()
        performed = await session.perform(click(100, 20))
        assert 'choose with select; it has "One", "Two"' in performed.notice
        await session.perform(Action(kind=ActionKind.SELECT, point=at(100, 20), text="Two"))
        assert await title(session) == "Two"
        performed = await session.perform(click(100, 270))
        assert performed.notice == ""
        assert await title(session) == "Two button"


async def test_hover(browser: PlaywrightBrowser) -> None:
    body = row(100, "div", "onmouseenter='document.title = `over`' onmouseleave='document.title = `left`'")
    async with browser.session(opening_of(STYLE + body)) as session:
        await session.open()
        await session.perform(Action(kind=ActionKind.HOVER, point=at(100, 120)))
        assert await title(session) == "over"
        await session.perform(Action(kind=ActionKind.HOVER, point=at(100, 20)))
        assert await title(session) == "left"


async def test_scroll(browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effect_observer, "_PAGE_CAP_MS", 1000 * HANGS_S)  # the frame that shows it may come late
    inner = "<div id=inner style='height:100px;overflow:auto'><div style='height:900px'></div></div>"
    async with browser.session(opening_of(inner + "<div style='width:2000px;height:2000px'>")) as session:
        await session.open()

        async def scrolled(direction: str, point: tuple[float, float] | None = None) -> list[float]:
            performed = await session.perform(Action(kind=ActionKind.SCROLL, direction=direction, point=point))
            assert performed.refused == ""
            return [float(n) for n in await session.page_values(["scrollX", "scrollY", "inner.scrollTop"])]

        assert await scrolled("down") == [0, 300, 0]
        assert await scrolled("up") == [0, 0, 0]
        assert await scrolled("right") == [400, 0, 0]
        assert await scrolled("left") == [0, 0, 0]
        assert await scrolled("down", at(50, 50)) == [0, 0, 300]
        performed = await session.perform(Action(kind=ActionKind.SCROLL, direction="sideways"))
        assert "write up, down, left or right" in performed.refused


async def test_wait(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening_of("<script>setTimeout(() => { document.title = 'later' }, 50)</script>")) as session:
        await session.open()
        await session.perform(Action(kind=ActionKind.WAIT, seconds=0.2))
        assert await title(session) == "later"


async def test_navigate_and_go_back(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening_of("one", second=b"<title>second</title>")) as session:
        await session.open()
        await session.perform(Action(kind=ActionKind.NAVIGATE, text=f"{ORIGIN}/second"))
        assert await title(session) == "second"
        await session.perform(Action(kind=ActionKind.GO_BACK))
        assert await title(session) == "page"
        assert (await session.perform(Action(kind=ActionKind.GO_BACK))).beyond_start
        refused = (await session.perform(Action(kind=ActionKind.NAVIGATE, text="two words"))).refused
        assert refused == "'two words' is no http(s) address"


def tab(name: str, *, active: bool = False) -> BrowserTab:
    return BrowserTab(title=name, url=f"{ORIGIN}/{name}" if name != "page" else f"{ORIGIN}/", active=active)


def new_tab(text: str = "") -> Action:
    return Action(kind=ActionKind.NEW_TAB, text=text)


def switch_tab(position: int | None) -> Action:
    return Action(kind=ActionKind.SWITCH_TAB, tab=position)


def close_tab(position: int | None = None) -> Action:
    return Action(kind=ActionKind.CLOSE_TAB, tab=position)


async def test_tabs(browser: PlaywrightBrowser) -> None:
    others = {name: page("").replace(b">page<", f">{name}<".encode()) for name in ("a", "b")}
    async with browser.session(opening_of("<body bgcolor=red>", **others)) as session:
        await session.open()
        assert (await session.state()).tabs == ()
        first = await session.view()
        assert (await session.perform(new_tab(f"{ORIGIN}/a"))) == Performed(num_documents=1)
        assert (await session.view()).state.tabs == (tab("page"), tab("a", active=True))
        await session.perform(new_tab())
        blank = BrowserTab(title="", url="about:blank", active=True)
        assert (await session.state()).tabs[2] == blank
        await session.perform(Action(kind=ActionKind.NAVIGATE, text=f"{ORIGIN}/b"))
        assert (await session.state()).tabs == (tab("page"), tab("a"), tab("b", active=True))
        await session.perform(switch_tab(1))
        view = await session.view()
        assert view.state.tabs == (tab("page", active=True), tab("a"), tab("b"))
        assert view.screenshot.data == first.screenshot.data
        await session.perform(close_tab(3))
        assert (await session.state()).tabs == (tab("page", active=True), tab("a"))
        await session.perform(switch_tab(2))
        await session.perform(close_tab())
        assert await title(session) == "page"
        assert (await session.state()).tabs == ()


async def test_a_tab_that_closed_itself_while_the_policy_thought(browser: PlaywrightBrowser) -> None:
    opens = "<button style='position:absolute;inset:0' onclick='window.a = window.open(\"a\"); window.open(\"b\")'>"
    async with browser.session(opening_of(opens, a=page("a"), b=page("b"))) as session:
        await session.open()
        await session.perform(click())
        await session._windows.opened(2)
        tabs = (await session.view()).state.tabs
        first, second = (next(each for each in session.context.pages if each.url == f"{ORIGIN}/{name}") for name in ("", "a"))
        async with second.expect_event("close", timeout=1000 * HANGS_S):
            await first.evaluate("a.close()")
        closed = [each.url for each in tabs].index(f"{ORIGIN}/a") + 1
        assert (await session.perform(switch_tab(closed))).refused == f"switch_tab {closed} names a tab that is closed by now"
        assert (await session.perform(switch_tab(1))).refused == ""
        assert (await session.perform(close_tab(5 - closed))).refused == ""
        assert (await session.view()).state.url == f"{ORIGIN}/"


async def test_tabs_that_cannot_be(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening_of("")) as session:
        await session.open()
        assert (await session.perform(close_tab())).refused == "this is the only tab, which stays open"
        assert (await session.perform(close_tab(1))).refused == "this is the only tab, which stays open"
        assert (await session.perform(switch_tab(2))).refused == "switch_tab 2 names no tab: there is only tab 1"
        assert (await session.perform(switch_tab(None))).refused == "switch_tab needs the number of a tab"
        assert "no http(s) address" in (await session.perform(new_tab("file:///etc/passwd"))).refused
        for _ in range(7):
            await session.perform(new_tab())
        assert (await session.perform(close_tab(0))).refused == "close_tab 0 names no tab: there are tabs 1 to 8"
        assert (await session.perform(new_tab())).refused == "8 tabs are open, which is the limit: close one first"


async def test_a_tab_without_a_page_before_is_closed_by_going_back(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening_of("", a=page("a"))) as session:
        await session.open()
        await session.perform(new_tab(f"{ORIGIN}/a"))
        performed = await session.perform(Action(kind=ActionKind.GO_BACK))
        assert not performed.beyond_start
        assert "the tab was closed" in performed.notice
        assert (await session.state()).url == f"{ORIGIN}/"


async def test_a_window_that_a_page_opens_is_the_page(browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "<a target=_blank href=/popup style='position:absolute;inset:0'>open</a>"
    popup = page("<button style='position:absolute;inset:0' onclick='window.close()'>close")
    async with browser.session(opening_of(body, popup=popup)) as session:
        await session.open()
        performed = await session.perform(click())
        assert performed.notice == "a new window was opened"
        assert [(each.url, each.active) for each in (await session.state()).tabs] == [
            (f"{ORIGIN}/", False),
            (f"{ORIGIN}/popup", True),
        ]
        # The page that is in front then has announced a window, which has come already.
        monkeypatch.setattr(windows, "_APPEARS_S", 0.1)
        performed = await session.perform(Action(kind=ActionKind.CLICK, point=at(5, 5)))
        assert performed.notice == "a tab closed itself"
        assert (await session.state()).url == f"{ORIGIN}/"


@pytest.mark.parametrize("comes", [True, False], ids=["comes", "goes"])
async def test_a_window_that_comes_or_goes_while_the_page_is_looked_at(
    browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch, comes: bool
) -> None:
    """What is observed is of one tab, the one that is in front then."""
    capture, looks = Tab.capture, 0

    async def meanwhile(tab: Tab, *, jpeg_quality: int = 0) -> Screenshot:
        nonlocal looks
        looks += 1
        if looks == 1 and comes:
            async with session.context.expect_page():
                await tab.page.evaluate("void open('/popup')")
        elif looks == 1:
            await tab.page.close()
        return await capture(tab, jpeg_quality=jpeg_quality)

    async with browser.session(opening_of("<body bgcolor=red>", popup=page("<body bgcolor=blue>"))) as session:
        session.context.set_default_timeout(1000 * HANGS_S)
        await session.open()
        if not comes:
            await session.perform(new_tab(f"{ORIGIN}/popup"))
        monkeypatch.setattr(Tab, "capture", meanwhile)
        view = await session.view()
        assert view.state.url == (f"{ORIGIN}/popup" if comes else f"{ORIGIN}/")
        assert looks == 2
        assert view.screenshot.data == (await session.view()).screenshot.data


async def test_an_input_goes_to_no_window_that_the_policy_has_not_seen(browser: PlaywrightBrowser) -> None:
    popup = page("<button style='position:absolute;inset:0' onclick='document.title = `clicked`'>go</button>")
    async with browser.session(opening_of("", popup=popup)) as session:
        session.context.set_default_timeout(1000 * HANGS_S)
        await session.open()
        await session.view()
        async with session.context.expect_page():
            await session.context.pages[0].evaluate("void open('/popup')")
        performed = await session.perform(click())
        assert performed.refused == "the tab of the last screenshot is not in front any more"
        assert performed.notice == "a new window was opened"
        assert (await session.view()).state.title == "page"
        assert (await session.perform(click())).refused == ""
        assert await title(session) == "clicked"


async def test_an_input_goes_to_the_window_that_the_policy_went_to(browser: PlaywrightBrowser) -> None:
    button = page("<button style='position:absolute;inset:0' onclick='document.title = `clicked`'>go</button>")
    async with browser.session(opening_of("", button=button)) as session:
        await session.open()
        await session.view()
        await session.perform(new_tab(f"{ORIGIN}/button"))
        assert (await session.perform(click())).refused == ""
        assert await title(session) == "clicked"


async def test_read_page(browser: PlaywrightBrowser) -> None:
    body = "<h1> Title </h1><p style='display:none'>hidden</p><ul>" + "".join(f"<li>line {n}\n\n</li>" for n in range(200))
    async with browser.session(opening_of(body)) as session:
        await session.open()
        performed = await session.perform(Action(kind=ActionKind.READ_PAGE, num_lines=3))
        assert performed == Performed(page_text="Title\nline 0\nline 1")
        everything = await session.perform(Action(kind=ActionKind.READ_PAGE, num_lines=10**9))
        assert everything.page_text.splitlines()[-1] == "line 199"


async def test_an_answer_touches_nothing(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening_of("")) as session:
        await session.open()
        assert await session.perform(Action(kind=ActionKind.ANSWER, text="42")) == Performed()


@pytest.mark.parametrize(
    ("action", "refusal"),
    [
        (Action(kind=ActionKind.CLICK), "click needs a coordinate"),
        (Action(kind=ActionKind.SELECT, text="One"), "select needs a coordinate"),
        (Action(kind=ActionKind.DRAG, point=(1, 1)), "drag needs a coordinate to end at"),
        (
            Action(kind=ActionKind.CLICK, point=(1200, 5)),
            "(1200, 5) is outside the screenshot: coordinates go from 0 to 1000 in both directions",
        ),
        (Action(kind=ActionKind.HOVER, element=3), "there is no element 3: the last screenshot of this page has no marks"),
    ],
)
async def test_actions_without_a_place_are_refused(browser: PlaywrightBrowser, action: Action, refusal: str) -> None:
    async with browser.session(opening_of("")) as session:
        await session.open()
        assert await session.perform(action) == Performed(refused=refusal)


async def test_places_in_set_of_marks_mode() -> None:
    settings = (small(), EnvConfig(), ContextConfig(interaction_mode="set_of_marks"))
    async with PlaywrightBrowser(*settings) as browser, browser.session(opening_of("")) as session:
        await session.open()
        assert (await session.perform(Action(kind=ActionKind.CLICK))).refused == "click needs an element's number"


# beside the actions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "said", "left"),
    [
        ("document.title = `${alert('psst')}`", "(alert), which was dismissed: 'psst'", "undefined"),
        ("document.title = confirm('sure?')", "(confirm), which was dismissed: 'sure?'", "false"),
        ("document.title = prompt('name?')", "(prompt), which was dismissed: 'name?'", "null"),
        ("window.print(); document.title = 'on'", "wanted to print", "on"),
        ("location = 'tel:123'", "tel:123 leads to another program", "page"),
        ("for (let i = 0; i < 3; i++) alert('again')", "'again' (3 times)", "page"),
    ],
)
async def test_what_happens_on_the_side_is_said(browser: PlaywrightBrowser, script: str, said: str, left: str) -> None:
    body = f'<button style="position:absolute;inset:0" onclick="{script}">go</button>'
    async with browser.session(opening_of(body)) as session:
        await session.open()
        with anyio.fail_after(HANGS_S):
            performed = await session.perform(click())
        assert said in performed.notice
        assert await title(session) == left
        assert (await session.perform(Action(kind=ActionKind.WAIT, seconds=0))).notice == ""


async def test_links_to_other_programs_are_said(browser: PlaywrightBrowser) -> None:
    body = "<a href='mailto:a@b.test' style='position:absolute;inset:0'>write</a>"
    async with browser.session(opening_of(body)) as session:
        await session.open()
        assert "mailto:a@b.test leads to another program" in (await session.perform(click())).notice


async def test_file_choosers_are_closed_and_said(browser: PlaywrightBrowser) -> None:
    body = "<input type=file style='position:absolute;inset:0' onchange='document.title = `chosen`'>"
    async with browser.session(opening_of(body)) as session:
        await session.open()
        assert "asked for a file" in (await session.perform(click())).notice
        assert await title(session) == "page"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<a href='mailto:a@b.test' style='position:absolute;inset:0'>write</a>", "mailto:a@b.test leads to another program"),
        ("<input type=file style='position:absolute;inset:0'>", "asked for a file"),
        ("<select style='position:absolute;inset:0'><option>red<option>blue</select>", 'it has "red", "blue"'),
        ("<a href='/' target=_blank style='position:absolute;inset:0'>open</a>", "a new window was opened"),
    ],
    ids=["program", "chooser", "options", "window"],
)
async def test_what_happens_in_a_frame_is_said(browser: PlaywrightBrowser, body: str, said: str) -> None:
    frame = "<iframe src='/inner' style='position:absolute;inset:0;width:100%;height:100%;border:0'></iframe>"
    async with browser.session(opening_of(frame, inner=page(body))) as session:
        await session.open()
        assert said in (await session.perform(click())).notice


async def test_what_is_copied_in_a_frame_can_be_pasted(browser: PlaywrightBrowser) -> None:
    frame = "<iframe src='/inner' style='position:absolute;left:0;top:0;width:400px;height:150px;border:0'></iframe>"
    field = "<input style='position:absolute;top:200px;left:0;width:400px' oninput='document.title = value'>"
    inner = page("<input value=taken style='position:absolute;inset:0'>")
    async with browser.session(opening_of(frame + field, inner=inner)) as session:
        await session.open()
        await session.perform(click(100, 10))
        await session.perform(press("ctrl+a", "ctrl+c"))
        await session.perform(click(100, 210))
        await session.perform(press("ctrl+v"))
        assert await title(session) == "taken"


async def test_downloads_are_refused_and_said(browser: PlaywrightBrowser) -> None:
    link = "<a href='data:application/zip,x' download='report.zip' style='position:absolute;inset:0'>get</a>"
    async with browser.session(opening_of(link)) as session:
        await session.open()
        assert "a download was refused: 'report.zip'" in (await session.perform(click())).notice


@pytest.mark.parametrize(
    ("script", "left"),
    [
        ("navigator.geolocation.getCurrentPosition(() => say('given'), (error) => say(`error ${error.code}`))", ("error 1",)),
        # A headless shell, and a whole Chromium.
        ("Notification.requestPermission().then(say)", ("default", "denied")),
        (
            "navigator.mediaDevices.getUserMedia({video: true}).then(() => say('given'), (e) => say(e.name))",
            ("NotFoundError",),
        ),
        ("navigator.clipboard.readText().then(() => say('given'), (e) => say(e.name))", ("NotAllowedError",)),
    ],
    ids=["place", "notifications", "camera", "clipboard"],
)
async def test_permissions_are_denied_at_once(browser: PlaywrightBrowser, script: str, left: tuple[str, ...]) -> None:
    body = page(f'<script>const say = (text) => {{ document.title = text }}</script><body onclick="{script}">ask')
    secure = Opening(url="https://pages.test/", site=Documents("https://pages.test", {"/": body}), quiet_s=0.2)
    async with browser.session(secure) as session:
        await session.open()
        await session.perform(click(5, 5))
        with anyio.fail_after(HANGS_S):
            while (said := await title(session)) == "page":
                await anyio.lowlevel.checkpoint()
        assert said in left


async def test_a_page_that_asks_whether_to_leave_it_is_left(browser: PlaywrightBrowser) -> None:
    body = "<body style='height:100vh' onbeforeunload='return false'>text"
    async with browser.session(opening_of(body, second=b"<title>second</title>")) as session:
        await session.open()
        await session.perform(click())
        with anyio.fail_after(HANGS_S):
            performed = await session.perform(Action(kind=ActionKind.NAVIGATE, text=f"{ORIGIN}/second"))
        assert performed.notice == "the page asked whether to leave it, and was left"
        assert await title(session) == "second"


async def test_elements_are_reached_by_their_numbers() -> None:
    marks = ContextConfig(interaction_mode="set_of_marks")
    body = LOG + STYLE + row(40, "button", "onclick='log(event.clientY)'")
    async with PlaywrightBrowser(small(), EnvConfig(), marks) as marked, marked.session(opening_of(body)) as session:
        await session.open()
        assert [element.id for element in (await session.view()).elements] == [1]
        await session.perform(Action(kind=ActionKind.CLICK, element=1))
        assert await title(session) == "60"
        refused = (await session.perform(Action(kind=ActionKind.CLICK, element=2))).refused
        assert refused.startswith("there is no element 2")
