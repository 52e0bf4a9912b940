"""Playwright's driver and one Chromium under it: started together, watched together, ended together.

Invariant: whichever of the two dies first, `lost` is set by that event; when the context closes, no process and no profile
of either is left.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import anyio
import psutil
import structlog
from playwright.async_api import Browser, CDPSession, async_playwright
from playwright.async_api import Error as PlaywrightError
from playwright.async_api._context_manager import PlaywrightContextManager

from browser_workers.chromium.executable import sandboxed
from schemas.errors import BrowserError, BrowserLost, PageFailed

T = TypeVar("T")

_log = structlog.get_logger()
_CLOSING_S = 2.0
_ANSWER_S = 5.0

_ARGUMENTS = (
    # Nothing but the pages' own requests goes out.
    "--disable-client-side-phishing-detection",
    "--disable-domain-reliability",
    "--no-pings",
    "--disable-smooth-scrolling",
    # Nor beside the proxy that a context has: datagrams do not pass it, and names are the proxy's to look up.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--host-resolver-rules=MAP * ~NOTFOUND,EXCLUDE 127.0.0.1",
    # One process fewer, and no copy of every frame between two: rendering is in software either way.
    "--disable-gpu",
    "--in-process-gpu",
    # Chromium heeds the last such list alone, so that Playwright's own is here again. A page that was left is not kept, and
    # the next document may take over its frame: together half a navigation's CPU.
    "--disable-features=BackForwardCache,RenderDocument,"
    "AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,"
    "LensOverlay,MediaRouter,PaintHolding,ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,"
    "OptimizationHints,NetworkTimeServiceQuerying,AimEnabled,PreconnectToSearch,"
    "Translate,AcceptCHFrame,AutofillServerCommunication,CertificateTransparencyComponentUpdater,GlobalMediaControls,"
    "InterestFeedContentSuggestions,DialMediaRouteProvider",
)


@dataclass
class Chromium:
    """One running Chromium."""

    browser: Browser
    protocol: CDPSession
    """Speaks to the browser itself, not to a page."""
    lost: anyio.Event = field(default_factory=anyio.Event)
    """Set when it or its driver is gone."""
    reaches_gates: bool = True
    """Whether what listens on this process's loopback can be its proxy."""

    async def call(self, what: str, awaitable: Awaitable[T], *, timeout_s: float) -> T:
        """What Playwright answers. Raises `PageFailed` or `BrowserLost`, within `timeout_s`."""
        try:
            with anyio.fail_after(timeout_s):
                return await awaitable
        except PlaywrightError as error:
            raise await self.why_gone(f"{what} could not be had: {first_line(error)}") from error
        except TimeoutError as error:
            raise await self.why_gone(f"{what} could not be had within {timeout_s:g} s") from error

    async def why_gone(self, reason: str) -> BrowserError:
        """Tells a page that ended, for `reason`, from a browser that did: by whether the browser answers."""
        if not self.lost.is_set():
            with anyio.move_on_after(_ANSWER_S), suppress(PlaywrightError):
                await self.protocol.send("Browser.getVersion")
                return PageFailed(reason)
        return BrowserLost("the browser ended while it was in use")


@asynccontextmanager
async def chromium(executable: Path, viewport: tuple[int, int], *, timeout_s: float) -> AsyncIterator[Chromium]:
    """Raises `BrowserLost` when driver or browser did not start within `timeout_s`."""
    driver = async_playwright()
    processes: list[psutil.Process] = []
    profiles: list[str] = []
    try:
        running = await _start(driver, executable, viewport, timeout_s)
        processes += processes_of(driver)
        profiles += _profiles(processes)
        _log.info("browser_started", product=running.browser.version, executable=str(executable))
        yield running
    finally:
        with anyio.CancelScope(shield=True):
            await end(driver, processes or processes_of(driver))
        for profile in profiles:
            # The driver has removed it, unless it was killed.
            shutil.rmtree(profile, ignore_errors=True)
        _log.info("browser_ended")


async def _start(driver: PlaywrightContextManager, executable: Path, viewport: tuple[int, int], timeout_s: float) -> Chromium:
    try:
        # Shielded: a start that is given up half-way would leave its processes to nobody.
        with anyio.fail_after(timeout_s, shield=True):
            return await _launch(driver, executable, viewport, timeout_s)
    except TimeoutError as error:
        raise BrowserLost(f"{executable} did not start within {timeout_s:g} s") from error
    except (PlaywrightError, OSError) as error:
        raise BrowserLost(f"{executable} could not be started: {first_line(error)}") from error


async def _launch(driver: PlaywrightContextManager, executable: Path, viewport: tuple[int, int], timeout_s: float) -> Chromium:
    playwright = await driver.start()
    browser = await playwright.chromium.launch(
        executable_path=executable,
        args=[*_ARGUMENTS, f"--window-size={viewport[0]},{viewport[1]}"],
        chromium_sandbox=sandboxed(),
        # Whoever runs this process decides what a signal means.
        handle_sigint=False,
        handle_sigterm=False,
        handle_sighup=False,
        timeout=timeout_s * 1000,
    )
    return await watched(driver, browser)


async def watched(driver: PlaywrightContextManager, browser: Browser) -> Chromium:
    """A browser that the driver has just got hold of."""
    running = Chromium(browser, await browser.new_browser_cdp_session())
    browser.on("disconnected", lambda _: running.lost.set())
    # Playwright has no public event for the end of its own driver. The error behind it is known then.
    browser._impl_obj._connection.on("close", running.lost.set)
    if driver._client is not None:
        driver._client._transport.on_error_future.add_done_callback(_retrieve)
    return running


def _retrieve(future: "asyncio.Future[object]") -> None:
    if not future.cancelled():
        future.exception()


def processes_of(driver: PlaywrightContextManager) -> list[psutil.Process]:
    """The driver and what it has started."""
    client = driver._client
    if client is None:
        return []
    with suppress(psutil.Error):
        parent = psutil.Process(client._transport._proc.pid)
        return [parent, *parent.children()]
    return []


def _profiles(processes: list[psutil.Process]) -> list[str]:
    """The folders in which Chromium keeps its state."""
    flag = "--user-data-dir="
    with suppress(psutil.Error):
        return [text.removeprefix(flag) for process in processes for text in process.cmdline() if text.startswith(flag)]
    return []


async def end(driver: PlaywrightContextManager, processes: list[psutil.Process]) -> None:
    """Gives them a moment to end by themselves, then ends them."""
    with anyio.move_on_after(_CLOSING_S) as patience, suppress(PlaywrightError):
        await driver.__aexit__()
    if patience.cancelled_caught:
        _log.warning("browser_killed")
    for process in processes:
        with suppress(psutil.Error):
            for each in (*process.children(recursive=True), process):
                each.kill()


def first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
