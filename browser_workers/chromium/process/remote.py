"""A browser that somebody else runs, reached over DevTools: only the driver is this process's own.

Invariants: the browser and what others do in it are left alone, unless it is a session of one episode; contexts of this worker
end with the connection. The token goes to the configured host, and nowhere else.
"""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

import anyio
import msgspec
import structlog
from playwright.async_api import Browser, Dialog, Playwright
from playwright.async_api import Error as PlaywrightError

from browser_workers.chromium.events import listen
from browser_workers.chromium.process.driver import Driver
from browser_workers.chromium.process.launch import Chromium, end, first_line, watched
from browser_workers.chromium.sign_in import sign_in
from browser_workers.network.addresses import is_loopback
from browser_workers.network.gate import Gate
from browser_workers.network.rules import Rules
from browser_workers.providers.provider import Place
from bus.background import companion_group
from bus.retry import Backoff
from bus.trying import Tries
from schemas.errors import BrowserError, BrowserLost, ConfigurationError

_log = structlog.get_logger()
_REACHED_AGAIN = Backoff(0.1, 2.0)
_ATTEMPT_S = 10
"""For the first; the next have twice as long each."""
_CLOSE_S = 15.0
_VERSION_PATH = "json/version"
_NO_PROXIES = (
    "browser_config.proxies and browser_config.proxies_file have no effect on the browser at {}, which is on another machine: "
    "give it its proxy there, and leave them out"
)
_SECURE = {"http": "ws", "https": "wss"}


class _Version(msgspec.Struct):
    address: str = msgspec.field(name="webSocketDebuggerUrl")


@asynccontextmanager
async def remote_chromium(place: Place, *, has_proxies: bool, timeout_s: float) -> AsyncIterator[Chromium]:
    """Raises `BrowserLost` when no connection was had in time, `ConfigurationError` for proxies that cannot apply."""
    driver = Driver()
    running: Chromium | None = None
    where = place.shown
    try:
        try:
            with anyio.fail_after(timeout_s):
                playwright = await driver.start()
                running = await _connect(driver, playwright, place, timeout_s)
                # What is in a session's default context has no proxy of its own.
                running.is_session = place.is_session
                running.reaches_gates = not place.is_session and await _reaches_gates(running, place.url)
                if not running.reaches_gates and has_proxies:
                    raise ConfigurationError(_NO_PROXIES.format(where))
        except TimeoutError as error:
            raise BrowserLost(f"the browser at {where} could not be reached within {timeout_s:g} s") from error
        except (PlaywrightError, BrowserError, OSError) as error:
            raise BrowserLost(f"the browser at {where} could not be used: {_without_query(error, place.url)}") from error
        _log.info("browser_connected", product=running.browser.version, address=where, gate=running.reaches_gates)
        yield running
    finally:
        with anyio.CancelScope(shield=True):
            await end(driver, running)
        _log.info("browser_disconnected", address=where)


def socket_address(url: str, announced: str) -> str:
    """Where a browser's socket is, by what it announced behind `url`: scheme and host remain those that were configured."""
    parts, path = urlsplit(url), urlsplit(announced)
    prefix = parts.path.rstrip("/")
    return urlunsplit((_SECURE[parts.scheme], parts.netloc, prefix + path.path, path.query or parts.query, ""))


async def _connect(driver: Driver, playwright: Playwright, place: Place, timeout_s: float) -> Chromium:
    """Tries until it succeeds or is cancelled: a browser that was restarted takes a while."""
    async for number in Tries(_REACHED_AGAIN):
        attempt_s = min(_ATTEMPT_S * 2**number, timeout_s)
        try:
            # The driver alone keeps the time: a connection that it made and nobody took would be left open.
            return await watched(driver, await _attempt(playwright, place, attempt_s))
        except (PlaywrightError, msgspec.DecodeError) as error:
            _log.warning("browser_not_reached", address=place.shown, error=_without_query(error, place.url))
    raise AssertionError("the rounds never end")


async def _attempt(playwright: Playwright, place: Place, timeout_s: float) -> Browser:
    headers = {"Authorization": f"Bearer {place.token}"} if place.token else {}
    address = place.url
    if urlsplit(address).scheme in _SECURE:
        address = socket_address(address, await _announced(playwright, address, headers, timeout_s))
    # What is there already is not this worker's: no defaults for it.
    browser = await playwright.chromium.connect_over_cdp(address, headers=headers, no_defaults=True, timeout=timeout_s * 1000)
    for context in browser.contexts if not place.is_session else ():
        # Without a listener the driver would answer other people's dialogs.
        listen(context, "dialog", _leave_alone)
    return browser


async def _announced(playwright: Playwright, url: str, headers: dict[str, str], timeout_s: float) -> str:
    parts = urlsplit(url)
    asked = urlunsplit((parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/{_VERSION_PATH}", parts.query, ""))
    requests = await playwright.request.new_context(extra_http_headers=headers)
    try:
        # A redirect would take the token elsewhere.
        response = await requests.get(asked, max_redirects=0, timeout=timeout_s * 1000)
        return msgspec.json.decode(await response.body(), type=_Version).address
    finally:
        await requests.dispose()


def _leave_alone(_: Dialog) -> None: ...


async def _reaches_gates(running: Chromium, url: str) -> bool:
    """Whether the browser is on this machine, as its address says: behind a tunnel, it is not.

    Takes as long as it takes until that is known. Raises `PageFailed`, `BrowserLost` or `OSError` where it will not be.
    """
    if not is_loopback(urlsplit(url).hostname or ""):
        return False
    gate = Gate(Rules(), stranger_s=math.inf)
    async with companion_group() as group:
        await group.start(gate.serve)
        probe = _probe(running.browser, gate)
        await running.call("whether it reaches this machine", probe, timeout_s=math.inf, until_crash=True)
    return gate.signed_in


async def _probe(browser: Browser, gate: Gate) -> None:
    context = await browser.new_context(proxy={"server": gate.proxy})
    try:
        page = await context.new_page()
        await sign_in(page, await context.new_cdp_session(page), gate)
    finally:
        with anyio.move_on_after(_CLOSE_S, shield=True), suppress(PlaywrightError):
            await context.close()


def _without_query(error: BaseException, url: str) -> str:
    query = urlsplit(url).query
    text = first_line(error) or type(error).__name__
    return text.replace(query, "…") if query else text
