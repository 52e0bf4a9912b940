"""Finds a Chromium and starts it as a child whose whole process group ends with this process, however that ends."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from browser_workers.cdp import Connection
from schemas.errors import BrowserLost, ConfigurationError

_log = structlog.get_logger()
_CLOSING_S = 1.0
_ON_PATH = ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
"""The cheapest first: the headless shell has neither a profile nor extensions."""

_FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-first-run",
    "--no-default-browser-check",
    "--password-store=basic",
    "--force-color-profile=srgb",
    "--disable-dev-shm-usage",
    "--disable-smooth-scrolling",
    # Nothing but the pages' own requests goes out.
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-pings",
    # Many pages work side by side, and none of them is in front.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    # One process fewer, and no copy of every frame between two: rendering is in software either way.
    "--disable-gpu",
    "--in-process-gpu",
    # A page that was left is not kept, and the next document may take over its frame: together half a navigation's CPU.
    "--disable-features=BackForwardCache,RenderDocument,Translate,OptimizationHints,MediaRouter,PaintHolding,"
    "AcceptCHFrame,AutofillServerCommunication,CertificateTransparencyComponentUpdater,GlobalMediaControls,"
    "InterestFeedContentSuggestions,DialMediaRouteProvider",
)

# Chromium speaks on descriptors 3 and 4. A preexec function would do, but is not safe beside threads.
_LAUNCHER = """
import ctypes, os, signal, sys
to_child, from_child, parent = map(int, sys.argv[1:4])
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != parent:
    sys.exit(1)
high = [os.dup(fd) for fd in (to_child, from_child)]
while min(high) < 5:
    high = [os.dup(fd) for fd in high]
os.dup2(high[0], 3)
os.dup2(high[1], 4)
os.closerange(5, max(*high, to_child, from_child) + 1)
os.execv(sys.argv[4], sys.argv[4:])
"""


def find_chromium(explicit: str = "") -> Path:
    """The Chromium to use: the configured one, else the cheapest found.

    Raises:
        ConfigurationError: there is none; the message says what to install.
    """
    if explicit:
        path = shutil.which(explicit)
        if path is None:
            raise ConfigurationError(
                f"browser_config.executable is {explicit!r}, which is no program: write the path of a Chromium"
            )
        return Path(path)
    for candidate in (*_downloaded(), *(shutil.which(name) for name in _ON_PATH)):
        if candidate is not None:
            return Path(candidate)
    raise ConfigurationError(
        "no Chromium was found: run `playwright install chromium-headless-shell`, or on Debian and Ubuntu "
        "`apt-get install chromium-headless-shell` (or `chromium`), or write the path of one into browser_config.executable"
    )


def sandboxed() -> bool:
    """Whether Chromium can use its own sandbox: it refuses to for root."""
    return os.geteuid() != 0


def _downloaded() -> Iterator[Path]:
    """Playwright's own downloads, newest first."""
    caches = (
        os.environ.get("PLAYWRIGHT_BROWSERS_PATH", ""),
        "~/.cache/ms-playwright",
        "~/Library/Caches/ms-playwright",
    )
    for cache in caches:
        folder = Path(cache).expanduser()
        if cache and folder.is_dir():
            for pattern in ("chromium_headless_shell-*/*/*headless*shell", "chromium-*/*/chrome"):
                yield from sorted((path for path in folder.glob(pattern) if os.access(path, os.X_OK)), reverse=True)


@asynccontextmanager
async def chromium(executable: Path, *, timeout_s: float) -> AsyncIterator[Connection]:
    """A running Chromium; when the context closes, so does every process of it.

    Raises:
        BrowserLost: it did not start within `timeout_s`.
    """
    with tempfile.TemporaryDirectory(prefix="millrace-chromium-", ignore_cleanup_errors=True) as profile:
        child, read_fd, write_fd = _start(executable, profile)
        connection = await Connection.connect(read_fd, write_fd)
        try:
            version = await connection.call("Browser.getVersion", timeout_s=timeout_s)
            _log.info("browser_started", pid=child.pid, product=version.get("product"), executable=str(executable))
            yield connection
        finally:
            with anyio.CancelScope(shield=True):
                await connection.close()
                await _end(child)
            _log.info("browser_ended", pid=child.pid)


def _start(executable: Path, profile: str) -> tuple[subprocess.Popen[bytes], int, int]:
    child_reads, we_write = os.pipe()
    we_read, child_writes = os.pipe()
    sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
    command = (str(executable), *_FLAGS, *sandbox, f"--user-data-dir={profile}", "about:blank")
    launcher = (sys.executable, "-I", "-S", "-c", _LAUNCHER, str(child_reads), str(child_writes), str(os.getpid()))
    try:
        child = subprocess.Popen(
            (*launcher, *command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(child_reads, child_writes),
            start_new_session=True,
        )
    except OSError as error:
        os.close(we_read)
        os.close(we_write)
        raise BrowserLost(f"{executable} could not be started: {error}") from error
    finally:
        os.close(child_reads)
        os.close(child_writes)
    return child, we_read, we_write


async def _end(child: subprocess.Popen[bytes]) -> None:
    """Gives it a moment to end by itself, then ends its process group."""
    waiting = anyio.to_thread.run_sync
    try:
        await waiting(child.wait, _CLOSING_S)
    except subprocess.TimeoutExpired:
        _log.warning("browser_killed", pid=child.pid)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    await waiting(child.wait)
