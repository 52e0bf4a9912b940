"""Provides the browser at a place: started on this machine, or reached over DevTools."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from browser_workers.chromium.process.executable import find_chromium
from browser_workers.chromium.process.launch import Chromium, chromium
from browser_workers.chromium.process.remote import remote_chromium
from browser_workers.providers.provider import Place
from schemas.browser_config import BrowserConfig


class Source(Protocol):
    def __call__(self, place: Place, *, timeout_s: float) -> AbstractAsyncContextManager[Chromium]:
        """One browser, for as long as it lasts. Raises `BrowserLost` when none is had within `timeout_s`."""
        ...


def source_of(config: BrowserConfig) -> Source:
    """Raises `ConfigurationError` when no Chromium is named, and none is found."""

    def remote(place: Place, *, timeout_s: float) -> AbstractAsyncContextManager[Chromium]:
        return remote_chromium(place, has_proxies=bool(config.proxies or config.proxies_file), timeout_s=timeout_s)

    def local(place: Place, *, timeout_s: float) -> AbstractAsyncContextManager[Chromium]:
        return chromium(executable, viewport, timeout_s=timeout_s, page_memory_mb=config.page_memory_mb)

    if config.provided_by != "local":
        return remote
    executable, viewport = find_chromium(config.executable), (config.viewport_width, config.viewport_height)
    return local
