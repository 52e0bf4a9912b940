"""Opens the browser context of an episode, with the only way to the network that its pages have."""

from contextlib import suppress
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext
from playwright.async_api import Error as PlaywrightError

from browser_workers.browser import Opening
from browser_workers.chromium.interception import Interception
from browser_workers.chromium.process.launch import Chromium
from browser_workers.chromium.settings import TabSettings
from browser_workers.chromium.sign_in import sign_in
from browser_workers.chromium.tab import Tab
from browser_workers.network.gate import Gate
from browser_workers.network.reach import Reach
from browser_workers.network.rules import rules_for
from schemas.browser_config import BrowserConfig
from schemas.errors import PageFailed
from schemas.site import site_of

_NOTHING_BYPASSES = "<-loopback>"
"""Chromium leaves its proxy out for loopback unless it is told not to."""


async def open_context(
    running: Chromium, group: TaskGroup, settings: TabSettings, opening: Opening
) -> tuple[BrowserContext, Reach]:
    """A context of its own, and what its pages reach; of a session the default one. Raises `PageFailed` or `BrowserLost`."""
    rules = rules_for(settings.config, "" if opening.site is not None else opening.url)
    if not running.reaches_gates:
        context = _of_session(running) if running.is_session else await _new_context(running, settings, opening, None)
        interception = Interception(rules, context, running.requests)
        try:
            await running.call("the rules", interception.begin(group), timeout_s=settings.timeout_s)
        except BaseException:
            interception.close()
            with anyio.move_on_after(settings.timeout_s, shield=True), suppress(PlaywrightError):
                await context.close()
            raise
        return context, interception
    egress = settings.egresses.choose(site_of(opening.url))
    gate = Gate(rules, settings.network, site=opening.site, egress=egress)
    try:
        await group.start(gate.serve)
    except OSError as error:
        raise PageFailed(f"no gate could be opened: {error}") from error
    try:
        return await _new_context(running, settings, opening, gate), gate
    except BaseException:
        gate.close()
        raise


class _Target(msgspec.Struct):
    browserContextId: str = ""  # noqa: N815


async def let_out(running: Chromium, settings: TabSettings, tab: Tab, reach: Reach) -> None:
    """The context's pages may pass their gate from now on. Raises `PageFailed` or `BrowserLost`.

    Comes before requests of the context are routed: the driver would answer the gate itself, with nothing.
    """
    if isinstance(reach, Interception):
        target = msgspec.convert((await tab.send("Target.getTargetInfo"))["targetInfo"], _Target)
        reach.context_id = target.browserContextId
    if isinstance(reach, Gate):
        signing_in = sign_in(tab.page, await tab.prepare(), reach)
        await running.call("a way through the gate", signing_in, timeout_s=settings.timeout_s, until_crash=True)
        if not reach.signed_in:
            raise PageFailed("the browser was not let through the episode's gate")


def _of_session(running: Chromium) -> BrowserContext:
    """What a provider has prepared holds in this one alone."""
    if not running.browser.contexts:
        raise PageFailed("the session has no default context")
    return running.browser.contexts[0]


async def _new_context(running: Chromium, settings: TabSettings, opening: Opening, gate: Gate | None) -> BrowserContext:
    width, height = settings.viewport
    creating = running.browser.new_context(
        viewport={"width": width, "height": height},
        device_scale_factor=1,
        accept_downloads=False,
        storage_state=await settings.logins.of(opening.url) if opening.site is None else None,
        proxy=None if gate is None else {"server": gate.proxy, "bypass": _NOTHING_BYPASSES},
        **_identity(settings.config),
    )
    return await running.call("a context", creating, timeout_s=settings.timeout_s)


def _identity(config: BrowserConfig) -> dict[str, Any]:
    """What pages are told about whoever looks at them, in Playwright's words."""
    said: dict[str, Any] = {"color_scheme": config.color_scheme}
    said |= {"locale": config.locale} if config.locale else {}
    said |= {"timezone_id": config.timezone} if config.timezone else {}
    said |= {"user_agent": config.user_agent} if config.user_agent else {}
    if config.geolocation:
        latitude, longitude = map(float, config.geolocation.split(","))
        said |= {"geolocation": {"latitude": latitude, "longitude": longitude}, "permissions": ["geolocation"]}
    return said
