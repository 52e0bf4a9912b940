"""A driver and one Chromium under it: started together, watched together, ended together.

Invariant: whichever of the two dies first, `lost` is set by that event; when the context closes, no process and no profile
of either is left.
"""

import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import structlog
from playwright.async_api import Browser, CDPSession
from playwright.async_api import Error as PlaywrightError

from browser_workers.chromium.all_requests import AllRequests
from browser_workers.chromium.events import listen
from browser_workers.chromium.process.driver import Driver
from browser_workers.chromium.process.executable import sandboxed
from browser_workers.chromium.process.kept import Kept
from browser_workers.chromium.process.processes import Part, ProcessTree, Turns
from bus.retry import Backoff
from bus.trying import Tries
from schemas.errors import BrowserError, BrowserLost, ConfigurationError, PageFailed

T = TypeVar("T")

_log = structlog.get_logger()
_RELIEF_S, _ANSWER_S = 4.0, 15.0
"""A browser that has not answered for so long is relieved of a page, and then has so long again."""
_HELD_UP_S = 1.0
"""A deadline that is seen so late was missed by this process, not by the browser."""
_MOST_ASKED = 20
"""Times, where nobody had the time to answer."""
_COMPLETE_S = 2.0
_COMPLETE_LOOK_S = 0.02
_HEAP_LIMIT = 2
"""Times the bound of a page's memory."""
_CRASH_S, _CRASHES_S = 60.0, 0.2
"""From the end of a page's process until its crash is told, at most; from then until those of its other pages are."""
_BROWSER_ENDED = "the browser ended while it was in use"
_DRIVER_ENDED = "the browser's driver ended while it was in use"
_MOST_STARTS = 3
_START_AGAIN = Backoff(0.2, 1.0)
_NO_SANDBOX = "No usable sandbox"
_SANDBOX_ADVICE = (
    "found no usable sandbox, because this machine keeps user namespaces from ordinary users. As root, allow them: "
    "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu), `sysctl -w kernel.unprivileged_userns_clone=1` "
    "(older Debian) or `sysctl -w user.max_user_namespaces=10000`; in a container, start it with a seccomp profile that lets "
    "it make them (`--security-opt seccomp=...`)"
)

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

_NOT_WANTED = (
    # With it, no frame is held up however fast it changes its address or state: for everybody else that is 200 times in 10 s.
    "--disable-ipc-flooding-protection",
)


@dataclass(eq=False)
class Chromium:
    """One running Chromium, started here or reached elsewhere."""

    browser: Browser
    protocol: CDPSession
    """Speaks to the browser itself, not to a page."""
    processes: ProcessTree | None = None
    """Those that were started for it here: of a browser elsewhere, the driver alone."""
    kept: Kept = field(default_factory=Kept)
    """What its driver keeps of pages."""
    lost: anyio.Event = field(default_factory=anyio.Event)
    """Set when it or its driver is gone."""
    why_lost: str = ""
    reaches_gates: bool = True
    """Whether what listens on this process's loopback can be its proxy."""
    is_session: bool = False
    """One episode's alone, which plays in its default context and ends with it."""
    relieve: Callable[[], None] = lambda: None
    """Ends the page that most likely keeps the browser from answering, where there is one."""
    requests: AllRequests = field(init=False)
    """That ask before they go out, where pages pass no gate."""
    _asking: anyio.Lock = field(default_factory=anyio.Lock)
    _calls: set[anyio.CancelScope] = field(default_factory=set)
    _until_crash: set[anyio.CancelScope] = field(default_factory=set)
    _num_crashes: int = 0
    _expected_crash: tuple[float, str] = (0.0, "")

    def __post_init__(self) -> None:
        self.requests = AllRequests(self.protocol)

    def lose(self, reason: str) -> None:
        """It is of no more use: every call under way ends. Only the first reason counts."""
        if not self.lost.is_set():
            self.why_lost = reason
            self.lost.set()
            for call in self._calls:
                call.cancel()

    def expect_crash(self, reason: str) -> None:
        """A page's process is about to be ended, for `reason`."""
        self._expected_crash = time.monotonic() + _CRASH_S, reason

    def why_crashed(self) -> str:
        """What to say of a page that crashed just now. (Which process a page is in cannot be had.)"""
        until, reason = self._expected_crash
        now = time.monotonic()
        if now >= until:
            return "the page crashed"
        self._expected_crash = min(until, now + _CRASHES_S), reason
        return reason

    def note_crash(self) -> None:
        """Some page crashed. One that was not known yet has no other way to say so."""
        self._num_crashes += 1
        for call in self._until_crash:
            call.cancel()

    async def call(self, what: str, awaitable: Awaitable[T], *, timeout_s: float, until_crash: bool = False) -> T:
        """What Playwright answers. Raises `PageFailed` or `BrowserLost`, within `timeout_s`.

        With `until_crash`, it is given up as soon as any page crashes: it may be the one that this call would bring.
        """
        num_crashes = self._num_crashes
        try:
            with anyio.move_on_after(timeout_s) as scope, self._ending(scope, until_crash=until_crash):
                return await awaitable
        except PlaywrightError as error:
            raise await self.why_gone(f"{what} could not be had: {first_line(error)}") from error
        if until_crash and self._num_crashes > num_crashes:
            raise await self.why_gone(self.why_crashed())
        raise await self.why_gone(f"{what} could not be had within {timeout_s:g} s")

    async def why_gone(self, reason: str) -> BrowserError:
        """Tells a page that ended, for `reason`, from a browser that did: by whether the browser answers.

        One that has too much to do for a single page is relieved of it before all others are lost as well.
        """
        async with self._asking:
            if await self._answers(_RELIEF_S):
                return PageFailed(reason)
            if not self.lost.is_set():
                self.relieve()
            if await self._answers(_ANSWER_S):
                return PageFailed(reason)
            self.lose(f"the browser did not answer within {_RELIEF_S + _ANSWER_S:g} s")
        return BrowserLost(self.why_lost)

    async def _answers(self, patience_s: float) -> bool:
        """Asked anew where this process was held up, or those whom the answer passes were kept from the CPUs."""
        for _ in range(_MOST_ASKED):
            turns, asked_at = await self._turns(), time.monotonic()
            with anyio.move_on_after(patience_s) as patience, self._ending(patience):
                try:
                    await self.protocol.send("Browser.getVersion")
                except PlaywrightError:
                    self.lose(_BROWSER_ENDED)
            if self.lost.is_set() or not patience.cancelled_caught:
                return not self.lost.is_set()
            waited_s = time.monotonic() - asked_at
            is_held_up = waited_s >= patience_s + _HELD_UP_S
            if not (is_held_up or (await self._turns()).starved_since(turns, waited_s)):
                return False
        return False

    async def _turns(self) -> Turns:
        return await anyio.to_thread.run_sync(self.processes.turns) if self.processes is not None else Turns()

    @contextmanager
    def _ending(self, call: anyio.CancelScope, *, until_crash: bool = False) -> Iterator[None]:
        """A call that ends when the browser is lost and, so asked, when a page crashes."""
        self._calls.add(call)
        if until_crash:
            self._until_crash.add(call)
        if self.lost.is_set():
            call.cancel()
        try:
            yield
        finally:
            self._calls.discard(call)
            self._until_crash.discard(call)


@asynccontextmanager
async def chromium(
    executable: Path, viewport: tuple[int, int], *, timeout_s: float, page_memory_mb: int = 0
) -> AsyncIterator[Chromium]:
    """Raises `BrowserLost` when driver or browser did not start within `timeout_s`, `ConfigurationError` when it never can."""
    driver = Driver()
    running: Chromium | None = None
    # The driver removes what it has made, unless it was killed.
    folders = {await anyio.to_thread.run_sync(partial(tempfile.mkdtemp, prefix="millrace-browser-"))}
    try:
        options = arguments(viewport, page_memory_mb)
        running = await _start(driver, executable, options, artifacts=next(iter(folders)), timeout_s=timeout_s)
        if running.processes is not None:
            folders |= await anyio.to_thread.run_sync(_profiles, running.processes)
        _log.info("browser_started", product=running.browser.version, executable=str(executable), sandbox=sandboxed())
        yield running
    finally:
        with anyio.CancelScope(shield=True):
            await end(driver, running)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        _log.info("browser_ended")


def arguments(viewport: tuple[int, int], page_memory_mb: int) -> list[str]:
    """Chromium's command line, beside what Playwright gives."""
    # Where two looks at the process are too far apart. Near its limit a heap is collected without end, so it is not the bound.
    heap = [f"--js-flags=--max-old-space-size={_HEAP_LIMIT * page_memory_mb}"] if page_memory_mb else []
    return [*_ARGUMENTS, *heap, f"--window-size={viewport[0]},{viewport[1]}"]


async def _start(driver: Driver, executable: Path, options: list[str], *, artifacts: str, timeout_s: float) -> Chromium:
    try:
        # Shielded: a start that is given up half-way would leave its processes to nobody.
        with anyio.fail_after(timeout_s, shield=True):
            return await _launch(driver, executable, options, artifacts=artifacts, timeout_s=timeout_s)
    except TimeoutError as error:
        raise BrowserLost(f"{executable} did not start within {timeout_s:g} s") from error
    except (PlaywrightError, OSError) as error:
        if _NO_SANDBOX in str(error):
            raise ConfigurationError(f"{executable} {_SANDBOX_ADVICE}") from error
        raise BrowserLost(f"{executable} could not be started: {first_line(error)}") from error


async def _launch(driver: Driver, executable: Path, options: list[str], *, artifacts: str, timeout_s: float) -> Chromium:
    playwright = await driver.start()
    start = partial(
        playwright.chromium.launch,
        executable_path=executable,
        args=options,
        ignore_default_args=list(_NOT_WANTED),
        artifacts_dir=artifacts,
        chromium_sandbox=sandboxed(),
        # Whoever runs this process decides what a signal means.
        handle_sigint=False,
        handle_sigterm=False,
        handle_sighup=False,
        timeout=timeout_s * 1000,
    )
    return await watched(driver, await _started(start))


async def _started(start: Callable[[], Awaitable[Browser]]) -> Browser:
    """One that ends while it comes up, as on a machine that is short of memory or processes for a moment, is started again."""
    async for number in Tries(_START_AGAIN, most=_MOST_STARTS):
        try:
            return await start()
        except PlaywrightError as error:
            if number + 1 == _MOST_STARTS or _NO_SANDBOX in str(error):
                raise
            _log.warning("browser_start_failed", reason=first_line(error))
    raise AssertionError("the last try returns or raises")


async def watched(driver: Driver, browser: Browser) -> Chromium:
    """A browser that the driver has just got hold of."""
    running = Chromium(browser, await browser.new_browser_cdp_session(), driver.processes(), driver.kept)
    listen(browser, "disconnected", lambda _: running.lose(_BROWSER_ENDED), running.lose)
    listen(running.protocol, "Target.targetCrashed", lambda _: running.note_crash(), running.lose)
    await running.protocol.send("Target.setDiscoverTargets", {"discover": True, "filter": [{"type": "page"}]})
    # Playwright has no public event for the end of its own driver. The error behind it is known then.
    listen(browser._impl_obj._connection, "close", lambda _: running.lose(_DRIVER_ENDED), running.lose)
    return running


def _profiles(processes: ProcessTree) -> set[str]:
    """Blocks until the process is known that comes last: the end of one that was never seen would not be noticed."""
    until = time.monotonic() + _COMPLETE_S
    while all(seen.part is not Part.NETWORK for seen in processes.look(full=True).values()) and time.monotonic() < until:
        time.sleep(_COMPLETE_LOOK_S)
    return processes.profiles()


async def end(driver: Driver, running: Chromium | None) -> None:
    """At once where one of the two is gone already."""
    if running is None:
        await driver.end()
    else:
        await driver.end(at_once=running.lost.is_set(), processes=running.processes)


def first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
