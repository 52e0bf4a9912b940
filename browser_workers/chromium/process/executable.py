"""Finds a Chromium on this machine."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from schemas.errors import ConfigurationError

_ON_PATH = ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
"""The cheapest first: the headless shell has neither a profile nor extensions."""


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
