"""Provides a worker's browser: started on this machine, or reached over DevTools."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from browser_workers.chromium.process.executable import find_chromium
from browser_workers.chromium.process.launch import Chromium, chromium
from browser_workers.chromium.process.remote import remote_chromium
from schemas.browser_config import BrowserConfig


class Source(Protocol):
    def __call__(self, *, timeout_s: float) -> AbstractAsyncContextManager[Chromium]:
        """One browser, for as long as it lasts. Raises `BrowserLost` when none is had within `timeout_s`."""
        ...


def source_of(config: BrowserConfig) -> Source:
    """Raises `ConfigurationError` when no Chromium is named, and none is found."""

    def remote(*, timeout_s: float) -> AbstractAsyncContextManager[Chromium]:
        return remote_chromium(config, timeout_s=timeout_s)

    def local(*, timeout_s: float) -> AbstractAsyncContextManager[Chromium]:
        return chromium(executable, viewport, timeout_s=timeout_s, page_memory_mb=config.page_memory_mb)

    if config.cdp_url:
        return remote
    executable, viewport = find_chromium(config.executable), (config.viewport_width, config.viewport_height)
    return local
