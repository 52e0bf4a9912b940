"""Pages that mean harm end as observations or as named failures, within their deadlines, and the next episode is normal.

Pages that do not concern each other are met side by side, each in a session of its own in one browser.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import anyio
import anyio.abc
import anyio.lowlevel
import pytest
from playwright.async_api import Route

from browser_workers.browser import Opening, PageState, View
from browser_workers.chromium import document_limit, evaluation, navigation
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.calls import Calls, Json, NoAnswer
from browser_workers.chromium.process import launch
from browser_workers.chromium.process.process_monitor import BUSY_WINDOW_S
from browser_workers.chromium.session import PlaywrightSession
from browser_workers.providers.provider import Place
from browser_workers.site import Site, SiteRequest, SiteResponse
from schemas.context_config import ContextConfig
from schemas.env_config import EnvConfig
from schemas.errors import BrowserError, PageFailed
from schemas.messages import Action, ActionKind
from tests.deadlines import HANGS_S
from tests.support.browsers.browser_pages import ORIGIN, click, opening_of, page, press, small, title

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

ENV = EnvConfig(operation_timeout=HANGS_S / 4, instance_lifetime_max=1e6)
OPERATION_S = 10.0
"""Of operations that a page lets come to their end."""
PAGE_MIB = 300
ENDED = r"the page's script did not return within 10 s and was ended( \(\d+ times\))?"
UNANSWERED = r"did not return within|was leaving for elsewhere whenever it was asked|no screenshot could be taken"
TURNED = r"the page put one document in the place of another more than 12 times .*"
RELIEF_S = launch._RELIEF_S
TEXT = "<p style='height:90vh'>text"

Case = Callable[[PlaywrightBrowser], Awaitable[None]]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True, scope="module")
def patience() -> Iterator[None]:
    """No browser is relieved of a page or lost, and no navigation given up, because the machine is busy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "_RELIEF_S", HANGS_S / 4)
        patch.setattr(launch, "_ANSWER_S", HANGS_S / 4)
        patch.setattr(navigation, "LOAD_CAP_S", HANGS_S / 4)
        yield


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    """No heap of it is full before it is measured."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "_HEAP_LIMIT", 6)
        async with PlaywrightBrowser(small(page_memory_mb=PAGE_MIB), ENV) as browser:
            yield browser


async def a_normal_episode(browser: PlaywrightBrowser) -> None:
    body = "<button style='position:absolute;inset:0' onclick='document.title = `clicked`'>go</button>"
    async with browser.session(opening_of(body)) as session:
        await session.open()
        performed = await session.perform(click())
        assert performed.refused == performed.notice == performed.navigation_error == ""
        view = await session.view()
    assert (view.state.title, view.state.tabs, view.blank) == ("clicked", (), False)


@pytest.fixture(autouse=True)
async def normal_afterwards(browser: PlaywrightBrowser) -> AsyncIterator[None]:
    """The next episode in the same browser."""
    num_launches = max(1, browser.num_launches)
    yield
    with anyio.fail_after(HANGS_S):
        await a_normal_episode(browser)
    assert browser.num_launches == num_launches


@dataclass(frozen=True)
class Outcome:
    """What an episode of a click on a page came to."""

    said: str = ""
    view: View | None = None
    failure: str = ""


async def episode(browser: PlaywrightBrowser, opening: Opening, *, hurries: bool = False) -> Outcome:
    """Where it `hurries`, the operations behind its opening are short, for pages that are met by the end of one."""
    said = []
    try:
        async with browser.session(opening) as session:
            for action in (None, click(), pause()):
                performed = await (session.open() if action is None else session.perform(action))
                said += [performed.refused, performed.navigation_error, performed.notice]
                if hurries:
                    (await session._windows.active())._calls.timeout_s = OPERATION_S
            view = await session.view()
    except PageFailed as error:
        return Outcome(failure=str(error))
    return Outcome("; ".join(filter(None, said)), view)


def pause(seconds: float = 0.2) -> Action:
    return Action(kind=ActionKind.WAIT, seconds=seconds)


def observed(opening: Opening, *, title: str = "page", said: str = ".*") -> Case:
    """It is seen, whatever it does."""

    async def case(browser: PlaywrightBrowser) -> None:
        outcome = await episode(browser, opening)
        assert (outcome.failure, outcome.view is None) == ("", False)
        assert outcome.view is not None
        assert (outcome.view.state.title, outcome.view.state.url.partition(":")[0]) == (title, "http"), outcome.view.state
        assert re.fullmatch(said, outcome.said), outcome.said

    return case


def fails(opening: Opening, reason: str) -> Case:
    async def case(browser: PlaywrightBrowser) -> None:
        outcome = await episode(browser, opening)
        assert re.search(reason, outcome.failure), outcome

    return case


def observed_or_fails(opening: Opening, *, title: str, reason: str) -> Case:
    async def case(browser: PlaywrightBrowser) -> None:
        outcome = await episode(browser, opening, hurries=True)
        if outcome.view is None:
            assert re.search(reason, outcome.failure), outcome
        else:
            assert outcome.view.state.title == title

    return case


async def side_by_side(browser: PlaywrightBrowser, cases: Mapping[str, Case]) -> None:
    """All that went wrong is told."""
    wrong: list[Exception] = []

    async def meet(name: str, case: Case) -> None:
        with noted(name, wrong), anyio.fail_after(HANGS_S):
            await case(browser)

    async with anyio.create_task_group() as group:
        for name, case in cases.items():
            group.start_soon(meet, name, case)
    if wrong:
        raise ExceptionGroup("some pages ended otherwise", wrong)


@contextmanager
def noted(name: str, wrong: list[Exception]) -> Iterator[None]:
    try:
        yield
    except (AssertionError, BrowserError, TimeoutError) as error:
        error.add_note(f"on the page that {name}")
        wrong.append(error)


def on_click(script: str) -> bytes:
    return page("").replace(b"<body", f'<body onclick="{script}"'.encode()) + TEXT.encode()


def on_opening(script: str) -> bytes:
    return page(f"<script>{script}</script>{TEXT}")


async def test_restless_pages_are_observed(browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them is endless, however long it takes on a busy machine."""
    monkeypatch.setattr("browser_workers.chromium.endless_scripts._SCRIPT_S", HANGS_S)
    bodies = {
        "turns": "<style>p { animation: turn 1s infinite } @keyframes turn { to { transform: rotate(1turn) } }</style><p>text",
        "changes colour": "<p>text<script>const go = () => { document.body.style.color = `rgb(0,0,${Date.now() % 255})`; "
        "requestAnimationFrame(go) }; go()</script>",
        "pushes states": "<p>text<script>setInterval(() => history.pushState(null, '', `/${Math.random()}`), 1)</script>",
        "nests": "<p>text<iframe src='/'></iframe>",
        "is huge": "<p>text<script>document.body.append(...Array.from({length: 200000}, () => document.createElement('i')))"
        "</script>",
    }
    await side_by_side(browser, {name: observed(opening_of(body), said="") for name, body in bodies.items()})


async def test_pages_that_replace_themselves_are_observed(browser: PlaywrightBrowser) -> None:
    pages = {
        "navigates every 50 ms": observed(opening_of(on_opening("setTimeout(() => { location = `/?${Math.random()}` }, 50)"))),
        "reloads every 50 ms": observed(opening_of(on_opening("setTimeout(() => location.reload(), 50)"))),
    }
    await side_by_side(browser, pages)


async def test_a_page_that_never_ceases_to_write_is_observed(browser: PlaywrightBrowser) -> None:
    """However long it takes to be heard by one that leaves itself no time: on a busy machine that may be many seconds."""
    writes = on_opening("setInterval(() => { document.write('x'); document.close() }, 1)")
    await side_by_side(browser, {"writes": observed(opening_of(writes), title="")})


async def test_pages_that_replace_themselves_faster_than_they_are_asked_are_observed(
    browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine so full that a question takes longer to reach a document than the document lasts."""
    send = Calls.send

    async def late(calls: Calls, method: str, params: Json | None = None, **named: float) -> Json:
        await anyio.sleep(0.15)
        return await send(calls, method, params, **named)

    monkeypatch.setattr(Calls, "send", late)
    monkeypatch.setattr("browser_workers.chromium.tab.LOAD_CAP_S", 1.0)
    for most in ("MAX_DOCUMENTS", "MAX_IN_FRAMES", "MAX_IN_ONE_FRAME"):
        monkeypatch.setattr(f"browser_workers.chromium.document_limit.{most}", 10**6)
    # Each document asks for one other: the fuller the machine, the fewer there are.
    framed = "<iframe onload='setTimeout(() => { this.src = `/inner?${Math.random()}` }, 30)'></iframe>"
    reloading = "setTimeout(() => location.reload(), 50)"
    pages = {
        "navigates every 50 ms": observed(opening_of(on_opening("setTimeout(() => { location = `/?${Math.random()}` }, 50)"))),
        "reloads every 50 ms": observed(opening_of(on_opening(reloading))),
        "reloads and has a frame that navigates": observed(
            opening_of(page(f"{framed}<script>{reloading}</script>{TEXT}"), inner=b"inner")
        ),
    }
    await side_by_side(browser, pages)


async def test_a_question_that_is_passed_on_from_document_to_document_is_answered(
    browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine so full that each document has left before it hears it: until one has to stay."""
    send, call, heard = Calls.send, Calls.call, False

    async def noted(calls: Calls, what: str, awaitable: Awaitable[object], **named: float) -> object:
        nonlocal heard
        heard = heard or what == "Fetch.enable"
        return await call(calls, what, awaitable, **named)

    async def unheard(calls: Calls, method: str, params: Json | None = None, **named: float) -> Json:
        if method == "Runtime.evaluate" and not heard:
            await calls.page.wait_for_event("framenavigated", timeout=1000 * HANGS_S)
            raise NoAnswer("Runtime.evaluate did not return within 10 s")
        return await send(calls, method, params, **named)

    monkeypatch.setattr("browser_workers.chromium.tab.LOAD_CAP_S", 1.0)
    monkeypatch.setattr("browser_workers.chromium.document_limit.MAX_DOCUMENTS", 10**6)
    with anyio.fail_after(HANGS_S):
        async with browser.session(opening_of(on_opening("setTimeout(() => location.reload(), 50)"))) as session:
            monkeypatch.setattr(Calls, "send", unheard)
            monkeypatch.setattr(Calls, "call", noted)
            await session.open()
            assert (await session.view()).state.title == "page"
            assert heard
    monkeypatch.undo()


class Trap(Site):
    """Redirects to itself for ever."""

    origin = ORIGIN

    def respond(self, request: SiteRequest) -> SiteResponse:
        body = b"<title>turning</title><script>location = '/turns?' + Math.random()</script>"
        return SiteResponse(body, after_s=0.005)


async def test_endless_scripts_are_ended(browser: PlaywrightBrowser) -> None:
    """When they have run for long enough, however long that takes on a busy machine."""
    await side_by_side(
        browser,
        {
            "never returns from a click": observed(opening_of(on_click("for (;;) {}")), said=ENDED),
            "never returns while it loads": observed(opening_of(on_opening("for (;;) {}")), said=ENDED),
        },
    )


async def test_a_script_that_is_endless_again_and_again_keeps_nobody(browser: PlaywrightBrowser) -> None:
    again = on_click("setInterval(() => { for (;;) {} }, 0)")
    await side_by_side(
        browser,
        {"never returns again and again": observed_or_fails(opening_of(again), title="page", reason=UNANSWERED)},
    )


async def test_a_window_in_the_background_that_hangs_is_listed(
    browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("browser_workers.chromium.windows._LISTING_S", HANGS_S)

    async def hang(route: Route) -> None:
        await route.fulfill(body=page("<script>for (;;) {}</script>"), content_type="text/html")

    async with browser.session(opening_of(TEXT)) as session:
        session.context.set_default_timeout(1000 * HANGS_S)
        await session.context.route("http://hangs.test/", hang)
        await session.open()
        first = session.context.pages[0]
        async with session.context.expect_page() as opened:
            await first.evaluate("void open('http://hangs.test/', '', 'noopener')")
        await (await opened.value).wait_for_url("http://hangs.test/", wait_until="commit")
        await session.perform(Action(kind=ActionKind.SWITCH_TAB, tab=1))
        tabs = (await session.view()).state.tabs
        assert [(each.url, each.active) for each in tabs] == [(f"{ORIGIN}/", True), ("http://hangs.test/", False)]
        assert tabs[1].title


def shows_dialogs(document: bytes) -> Case:
    async def case(browser: PlaywrightBrowser) -> None:
        async with browser.session(opening_of(document)) as session:
            said = [(await session.open()).notice, (await session.perform(click())).notice]
            while "after 16 dialogs the page can show no more" not in "; ".join(said):
                said.append((await session.perform(pause())).notice)
            view = await session.view()
            assert (view.state.title, view.blank) == ("page", False)
            last = await session.perform(pause())
            assert "dialog" not in last.notice

    return case


async def test_endless_dialogs_are_ended(browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their number, however long an operation may take: on a busy machine sixteen dialogs do."""
    monkeypatch.setattr("browser_workers.chromium.tab.LOAD_CAP_S", HANGS_S)
    await side_by_side(
        browser,
        {
            "alerts in a loop": shows_dialogs(on_click("for (;;) alert(1)")),
            "asks in a loop": shows_dialogs(on_click("while (!confirm('?')) {}")),
            "asks at intervals": shows_dialogs(on_click("setInterval(() => confirm('?'), 0)")),
            "alerts while it loads": shows_dialogs(on_opening("for (;;) alert(1)")),
        },
    )


def opens_windows(script: str) -> Case:
    async def case(browser: PlaywrightBrowser) -> None:
        async with browser.session(opening_of(on_click(script))) as session:
            await session.open()
            said = (await session.perform(click())).notice
            while "opened more than 8 windows, which is the limit" not in said:
                said = (await session.perform(pause())).notice
            assert len((await session.view()).state.tabs) == 8
            await session.perform(pause())
            assert len((await session.view()).state.tabs) == 8

    return case


@pytest.mark.parametrize("script", ["for (;;) window.open('/')", "setInterval(() => window.open('/'), 1)"])
async def test_a_storm_of_windows_is_ended(browser: PlaywrightBrowser, script: str) -> None:
    await side_by_side(browser, {"opens windows": opens_windows(script)})


def will_not_be_left(trap: str, said: str) -> Case:
    async def case(browser: PlaywrightBrowser) -> None:
        body = page(f"{TEXT}<script>window.onbeforeunload = (event) => {{ {trap} }}</script>")
        async with browser.session(opening_of(body, second=b"<title>second</title>")) as session:
            await session.open()
            await session.perform(click())
            performed = await session.perform(Action(kind=ActionKind.NAVIGATE, text=f"{ORIGIN}/second"))
            assert re.fullmatch(said, f"{performed.navigation_error}{performed.notice}"), performed
            assert await title(session) == "second"

    return case


async def test_pages_that_will_not_be_left_are_left(browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = "the page asked whether to leave it, and was left"
    await side_by_side(
        browser,
        {
            "asks": will_not_be_left("return false", asked),
            "asks and alerts": will_not_be_left("alert('stay'); event.preventDefault()", asked),
            "only alerts": will_not_be_left("for (let i = 0; i < 1000; i++) alert('stay')", ""),
        },
    )
    # The navigation has time until the script has been ended.
    monkeypatch.setattr("browser_workers.chromium.endless_scripts._SCRIPT_S", OPERATION_S / 2)
    await side_by_side(browser, {"never returns": will_not_be_left("for (;;) {}", ".*")})


async def test_a_page_that_closes_itself_is_a_named_failure(browser: PlaywrightBrowser) -> None:
    closes = fails(opening_of(on_click("window.close()")), "the page closed itself")
    await side_by_side(browser, {"closes itself": closes})


GROWN_MIB = 3 * PAGE_MIB
"""A bomb stays at that: on a busy machine it may be looked at late."""
BOMBS = {
    "an array in a loop": "globalThis.kept ??= []; for (;;) "
    f"if (kept.length < {GROWN_MIB << 8}) kept.push(new Array(1000).fill(1))",
    "buffers, in turns": "globalThis.kept ??= []; setInterval(() => "
    f"{{ if (kept.length < {GROWN_MIB // 8}) kept.push(new Uint8Array(2 ** 23).fill(1)) }}, 1)",
    "nodes, in turns": "globalThis.i ??= 0; setInterval(() => "
    f"{{ if (i < {GROWN_MIB // 5}) document.append(new Comment(i++ + 'x'.repeat(5e6))) }}, 1)",
}


async def click_for_ever(session: PlaywrightSession) -> None:
    while True:
        with suppress(PageFailed):
            await session.perform(click())
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
async def test_a_bomb_of_memory_is_a_named_failure(browser: PlaywrightBrowser, bomb: str) -> None:
    """Others in the same browser go on."""
    async with (
        browser.session(opening_of(on_click("document.title += 1"))) as other,
        browser.session(opening_of(on_click(bomb))) as session,
    ):
        await other.open()
        await session.open()
        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                group.start_soon(click_for_ever, session)
                failure = await session.wait_failed()
                group.cancel_scope.cancel()
        assert str(failure) == f"the page used more than {PAGE_MIB} MiB (browser_config.page_memory_mb) and was ended"
        await other.perform(click())
        assert await title(other) == "page1"


async def _never(stream: anyio.abc.SocketStream) -> None:
    """Redirects to itself at `/turns`, is silent at `/silent`; begins a page and never ends it anywhere else."""
    async with stream:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                request = await stream.receive()
                if request.startswith(b"GET /turns"):
                    await stream.send(b"HTTP/1.1 302 Found\r\nLocation: /turns\r\nContent-Length: 0\r\n\r\n")
                elif not request.startswith(b"GET /silent"):
                    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 999999\r\n\r\n"
                    await stream.send(head + b"<title>begun</title><p>text")


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, _never)
        yield f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        group.cancel_scope.cancel()


def gives_up(opening: Opening, said: str) -> Case:
    """The address cannot be reached, and the episode goes on."""

    async def case(browser: PlaywrightBrowser) -> None:
        async with browser.session(opening) as session:
            assert re.search(said, (await session.open()).navigation_error)
            await session.view()

    return case


async def test_pages_that_never_arrive(browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    def served(path: str) -> Opening:
        return Opening(url=f"{address}/{path}", quiet_s=0.03)

    await side_by_side(
        browser,
        {
            "never ends": observed(served("begun"), title="begun", said=""),
            "redirects": gives_up(served("turns"), "ERR_TOO_MANY_REDIRECTS"),
        },
    )
    monkeypatch.setattr(navigation, "LOAD_CAP_S", OPERATION_S)
    unanswered = gives_up(served("silent"), f"/silent did not answer within {OPERATION_S:g} s")
    await side_by_side(browser, {"is not answered": unanswered})


async def test_pages_that_arrive_again_and_again_are_kept_at_one(
    browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that asks for the next before it has a body would never be painted: an error takes its place."""
    monkeypatch.setattr("browser_workers.chromium.document_limit.DOCUMENT_EVERY_S", HANGS_S)
    monkeypatch.setattr("browser_workers.chromium.tab.LOAD_CAP_S", HANGS_S)
    turning = Opening(url=f"{ORIGIN}/turns", site=Trap(), quiet_s=0.03)
    await side_by_side(
        browser,
        {
            "redirects by script": gives_up(turning, "ERR_BLOCKED_BY_CLIENT"),
            "reloads at once": observed(opening_of(on_opening("location.reload()")), said=TURNED),
        },
    )


async def test_a_page_is_not_at_rest_while_it_is_asked_whether_an_error_takes_its_place(
    browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine the answer may take seconds."""
    send = Calls.send

    async def late(calls: Calls, method: str, params: Json | None = None, **named: float) -> Json:
        if params is not None and params.get("expression") == document_limit._STAYS_WITHOUT_BODY:
            await anyio.sleep(1.0)
        return await send(calls, method, params, **named)

    monkeypatch.setattr(Calls, "send", late)
    monkeypatch.setattr(document_limit, "DOCUMENT_EVERY_S", HANGS_S)
    monkeypatch.setattr("browser_workers.chromium.tab.LOAD_CAP_S", HANGS_S)
    turning = Opening(url=f"{ORIGIN}/turns", site=Trap(), quiet_s=0.03)
    await side_by_side(browser, {"redirects by script": gives_up(turning, "ERR_BLOCKED_BY_CLIENT")})


async def test_a_document_that_is_still_coming_is_not_taken_for_one_without_a_body(browser: PlaywrightBrowser) -> None:
    """On a busy machine it may be asked before the first of it was parsed."""
    async with browser.session(opening_of(TEXT)) as session:
        await session.open()
        tab = await session._windows.active()
        await tab.page.evaluate("document.open()")
        async with anyio.create_task_group() as group:
            group.start_soon(tab.documents._show)
            await anyio.wait_all_tasks_blocked()
            await tab.page.evaluate("document.write('<title>came</title><p>text'); document.close()")
        assert not tab.documents._leaves_nothing
        assert await tab.page.title() == "came"


async def test_a_document_is_read_once_there_is_anything_of_it(
    browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine it may be shown long before the first of it was parsed."""
    assert "BEGINS_MS = 8000;" in evaluation._SCRIPT
    patient = evaluation._SCRIPT.replace("BEGINS_MS = 8000", f"BEGINS_MS = {1000 * HANGS_S:.0f}")
    monkeypatch.setattr(evaluation, "_SCRIPT", patient)
    async with browser.session(opening_of(TEXT)) as session:
        await session.open()
        tab = await session._windows.active()
        seen: dict[str, object] = {}

        async def read() -> None:
            seen["state"] = (await tab.state()).title
            seen["text"] = await tab.text(9)
            seen["facts"] = (await tab.facts()).title

        tab.begin_action()
        await tab.page.evaluate("document.open()")
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            assert await tab.page.evaluate("document.body === null")
            await tab.page.evaluate("document.write('<title>came</title><p>text')")
        assert seen == {"state": "came", "text": "text", "facts": "came"}


async def test_a_suites_own_document_is_read_once_there_is_anything_of_it(browser: PlaywrightBrowser) -> None:
    own = replace(opening_of(TEXT), feedback=False, probe="({utterance: document.title})")
    async with browser.session(own) as session:
        await session.open()
        tab = await session._windows.active()
        seen: list[PageState] = []

        async def read() -> None:
            seen.append(await tab.state())

        tab.begin_action()
        await tab.page.evaluate("document.open()")
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            await tab.page.evaluate("document.write('<title>came</title><p>text')")
        (state,) = seen
        assert state.environment is not None
        assert (state.title, state.environment.utterance) == ("came", "came")


async def test_a_document_that_never_begins_is_read_nevertheless(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening_of(TEXT)) as session:
        await session.open()
        tab = await session._windows.active()
        tab.begin_action()
        await tab.page.evaluate("document.open()")
        for _ in range(2):
            assert (await tab.state()).title == await tab.text(9) == (await tab.facts()).title == ""


async def test_a_storm_of_documents_is_ended(browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chromium has no time for anything else when it gets behind with them. Where the page gets no time either, it is seen."""
    monkeypatch.setattr(launch, "_RELIEF_S", RELIEF_S)
    turning = "document.querySelector('iframe').src = `/?${Math.random()}`"
    leading = "frames[0].location = `/?${Math.random()}`"
    adding = "document.body.append(Object.assign(document.createElement('iframe'), {src: `/?${Math.random()}`}))"
    removing = "if (frames.length > 20) document.querySelector('iframe').remove()"
    storms = {"turns its frame": turning, "leads its frame": leading, "makes frames": f"{{ {adding}; {removing} }}"}
    for name, turn in storms.items():
        storm = opening_of(f"<p>text<iframe></iframe><script>setInterval(() => {turn}, 1)</script>")
        reason = f"asks for documents without end|kept the browser from answering|more than {PAGE_MIB} MiB|{UNANSWERED}"
        await side_by_side(browser, {name: observed_or_fails(storm, title="page", reason=reason)})


async def test_a_page_that_keeps_the_browser_from_answering_is_ended_alone(browser: PlaywrightBrowser) -> None:
    """Nobody can see which page does: the one that uses most of the machine is."""
    spinning = "setInterval(() => { const began = performance.now(); while (performance.now() - began < 40); }, 1)"
    async with browser.session(opening_of(TEXT)) as other:
        await other.open()
        async with browser.session(opening_of(f"<p>text<script>{spinning}</script>")) as session:
            await session.open()
            await anyio.sleep(BUSY_WINDOW_S)
            browser._instances.at[Place()].running.relieve()
            with anyio.fail_after(HANGS_S):
                assert str(await session.wait_failed()) == "the page kept the browser from answering and was ended"
        assert (await other.view()).state.title == "page"


KEPT_MIB = 4
LONG = {
    "addresses": "fetch(`http://127.0.0.1:9/${long}`, {mode: 'no-cors'}).catch(() => 0)",
    "addresses of pictures": "new Image().src = `http://127.0.0.1:9/${long}`",
    "addresses of sockets": "new WebSocket(`ws://127.0.0.1:9/${long}`)",
    "addresses of workers": "new Worker(`/worker?${long}`)",
    "names of frames": "document.body.append(Object.assign(document.createElement('iframe'), {name: long}))",
    "bodies": "fetch('http://127.0.0.1:9/', {mode: 'no-cors', method: 'POST', body: long}).catch(() => 0)",
    "headers": "fetch('/', {headers: {long}}).catch(() => 0)",
    "exceptions": "setTimeout(() => { throw Error(long) })",
    "words in the console": "console.log(long)",
    "errors in the console": "console.error({long}, long)",
}


@pytest.fixture(scope="module")
async def listening_browser() -> AsyncIterator[PlaywrightBrowser]:
    async with PlaywrightBrowser(small(), ENV, ContextConfig(page_errors=True)) as browser:
        yield browser


@pytest.mark.parametrize("what", LONG)
async def test_a_page_that_gives_too_much_to_be_kept_is_given_up(
    listening_browser: PlaywrightBrowser, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr("browser_workers.chromium.process.kept.MOST_MIB", KEPT_MIB)
    flooding = f"const long = 'x'.repeat(100000); setInterval(() => {{ {LONG[what]} }}, 20)"
    async with listening_browser.session(opening_of(TEXT)) as other:
        await other.open()
        async with listening_browser.session(opening_of(f"<p>text<script>{flooding}</script>")) as session:
            with suppress(BrowserError):
                await session.open()
            with anyio.fail_after(HANGS_S):
                assert str(await session.wait_failed()).startswith(f"more than {KEPT_MIB} MiB had to be kept of what the page")
        assert (await other.view()).state.title == "page"
    await a_normal_episode(listening_browser)


async def test_a_page_that_sends_what_a_session_recorder_does_goes_on(browser: PlaywrightBrowser) -> None:
    """Of each document of 3,000 elements, one was seen to send 0.6 MB at first, uncompressed."""
    recording = (
        "for (let i = 0; i < 20; i++) await fetch('/', {method: 'POST', body: 'x'.repeat(1e6)}); document.title = 'sent'"
    )
    async with browser.session(opening_of(f"<p>text<script type='module'>{recording}</script>")) as session:
        await session.open()
        with anyio.fail_after(HANGS_S):
            while await title(session) != "sent":
                await anyio.lowlevel.checkpoint()
        await session.view()


async def crash(session: PlaywrightSession) -> None:
    of_tab = await session.context.new_cdp_session(session.context.pages[0])
    with suppress(Exception):
        await of_tab.send("Page.crash")


async def test_a_renderer_that_dies_is_a_named_failure(browser: PlaywrightBrowser) -> None:
    async with browser.session(opening_of("text")) as session:
        await session.open()
        async with anyio.create_task_group() as group:
            group.start_soon(crash, session)
            with anyio.fail_after(HANGS_S):
                assert "crashed" in str(await session.wait_failed())
            group.cancel_scope.cancel()
        with pytest.raises(PageFailed, match="crashed"):
            await session.perform(press("a"))
