"""Pages that change what JavaScript means: what is read of them stays what a visitor sees, and of a bounded length."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.chromium.calls import Calls, Json
from schemas.env_config import EnvConfig
from schemas.messages import Action, ActionKind
from tests.support.browsers.browser_pages import at, opening_of, small

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
LONG = 1_000_000


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    async with PlaywrightBrowser(small(), EnvConfig()) as browser:
        yield browser


READ = Action(kind=ActionKind.READ_PAGE, num_lines=10)


@pytest.mark.parametrize(
    "forgery",
    [
        f"<script>String.prototype.slice = Array.prototype.join = () => 'forged'.repeat({LONG})</script>",
        "<script>Object.defineProperty(HTMLElement.prototype, 'innerText', {get: () => 'forged'})</script>",
        "<form name='body'></form>",
    ],
    ids=["its functions", "its text", "its names"],
)
async def test_the_text_that_is_read_is_the_one_that_is_shown(browser: PlaywrightBrowser, forgery: str) -> None:
    async with browser.session(opening_of(f"<p>first</p>{forgery}<p>second</p>")) as session:
        await session.open()
        assert (await session.perform(READ)).page_text == "first\nsecond"


async def test_a_value_for_a_check_is_bounded(browser: PlaywrightBrowser) -> None:
    forgery = f"<script>String.prototype.slice = () => 'x'.repeat({LONG}); window.answer = 'x'.repeat({LONG})</script>"
    async with browser.session(opening_of(forgery)) as session:
        await session.open()
        values = await session.page_values(["window.answer", "'abc'.slice(1)"])
        assert [len(value) for value in values] == [100_000, 100_000]


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Characters of every answer that comes out of the browser."""
    found: list[int] = []
    send = Calls.send

    async def counted(calls: Calls, method: str, params: Json | None = None, *, timeout_s: float = 0.0) -> Json:
        answer = await send(calls, method, params, timeout_s=timeout_s)
        found.append(len(str(answer)))
        return answer

    monkeypatch.setattr(Calls, "send", counted)
    return found


async def test_a_value_is_bounded_before_it_leaves_the_page(browser: PlaywrightBrowser, sizes: list[int]) -> None:
    forgery = (
        f"<script>String = () => 'x'.repeat({5 * LONG}); window.answer = {{toString: () => 'x'.repeat({5 * LONG})}}</script>"
    )
    lie = f"({{done: false, reward: 0.5, utterance: 'x'.repeat({5 * LONG}), more: Array(1e6).fill('x')}})"
    async with browser.session(replace(opening_of(forgery), probe=lie)) as session:
        await session.open()
        state, values = await session.state(), await session.page_values(["1", "window.answer"])
    assert values == ("1", "x" * 100_000)
    assert state.environment is not None
    assert (state.environment.reward, len(state.environment.utterance)) == (0.5, 20_000)
    assert max(sizes) < 101_000


async def test_lists_of_a_page_stay_lists_whatever_the_page_made_of_them(browser: PlaywrightBrowser) -> None:
    """Of ten keys each, and of more than are read."""
    forgery = "<script>Object.defineProperty(Array.prototype, '9', {set() { throw 1; }}); Array.prototype.push = null</script>"
    keys = tuple("0123456789")
    for given, read in ((keys, keys), (keys * 9, (keys * 9)[:32])):
        lie = f"({{done: false, reward: 0.0, action: {{kind: 'press', keys: {list(given)}}}}})"
        async with browser.session(replace(opening_of(forgery), probe=lie)) as session:
            await session.open()
            environment = (await session.state()).environment
        assert environment is not None
        assert environment.action is not None
        assert environment.action.keys == read


async def test_what_a_page_says_of_its_select_is_bounded(browser: PlaywrightBrowser) -> None:
    body = "<select style='position:absolute;inset:0'><option>one</select>"
    forgery = f"<script>JSON.stringify = () => 'x'.repeat({LONG})</script>"
    async with browser.session(opening_of(body + forgery)) as session:
        await session.open()
        performed = await session.perform(Action(kind=ActionKind.SELECT, point=at(100, 100), text="two"))
        assert 0 < len(performed.refused) <= 4000
