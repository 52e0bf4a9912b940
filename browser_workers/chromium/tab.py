"""One page of one episode: its events folded into a little state, and the calls that act on it.

Waiting is by events: `settle` returns when nothing loads any more, with a cap. No call outlasts its deadline.
"""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio
import msgspec
from playwright._impl._errors import TargetClosedError
from playwright.async_api import CDPSession, Page
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from browser_workers.browser import Box, EnvironmentState, Opening, PageState
from browser_workers.chromium.loading import Loading
from schemas.config import BrowserConfig, ContextConfig, EnvConfig
from schemas.errors import BrowserError, PageFailed
from schemas.messages import Action, Picture

T = TypeVar("T")
Json = dict[str, object]

_CALL_TRIES = 4
_CAPTURE_S = 10.0
_SETTLE_CAP_S = 8.0
_LOAD_CAP_S = 30.0
_DRIVER_S = 1.0
"""Seconds the driver gets beyond the deadline that it keeps itself."""
_TEXT_LIMIT = 2000


@dataclass(frozen=True, slots=True)
class TabSettings:
    config: BrowserConfig
    env: EnvConfig = EnvConfig()
    context: ContextConfig = ContextConfig()

    @property
    def timeout_s(self) -> float:
        """Deadline of one operation."""
        return self.env.operation_timeout

    @property
    def viewport(self) -> tuple[int, int]:
        return self.config.viewport_width, self.config.viewport_height


class CallRefused(BrowserError):
    """Chromium answered a call with an error; the caller knows what that means."""


class NoAnswer(PageFailed):
    """A call's deadline passed."""


class _Environment(msgspec.Struct):
    done: bool = False
    reward: float = 0.0
    target: Box | None = None
    utterance: str = ""
    action: Action | None = None


_state_decoder = msgspec.json.Decoder(tuple[str, str, _Environment | None], strict=False)


class Tab:
    """Lives until its page is closed, crashes, or the browser ends."""

    def __init__(
        self,
        page: Page,
        settings: TabSettings,
        opening: Opening,
        why_gone: Callable[[str], Awaitable[BrowserError]],
        *,
        loading: bool,
    ) -> None:
        self.page = page
        self.opening = opening
        self.failure = ""
        """Why nothing more can be had from this tab."""
        self.loading = Loading(page, opening.site.origin if opening.site is not None else "", loading=loading)
        self._settings = settings
        self._why_gone = why_gone
        """Tells the end of a page from the end of its browser."""
        self._protocol: CDPSession | None = None
        self._calls: set[anyio.CancelScope] = set()
        self._gone = anyio.Event()

    def fail(self, reason: str) -> None:
        """Ends every call under way."""
        self.failure = self.failure or reason
        self._gone.set()
        for call in self._calls:
            call.cancel()
        self.loading.end()

    async def call(self, what: str, awaitable: Awaitable[T], *, timeout_s: float = 0.0) -> T:
        """What Playwright answers. Raises `CallRefused`, or `NoAnswer`, `PageFailed` or `BrowserLost` when none can come."""
        deadline_s = timeout_s or self._settings.timeout_s
        try:
            with anyio.move_on_after(deadline_s) as scope:
                self._calls.add(scope)
                if self.failure:
                    scope.cancel()
                return await awaitable
        except PlaywrightTimeout as error:
            raise NoAnswer(_first_line(error)) from error
        except TargetClosedError as error:
            # The event that says why comes behind the error.
            with anyio.move_on_after(_DRIVER_S):
                await self._gone.wait()
            raise await self._why_gone(self.failure or "the page is gone") from error
        except PlaywrightError as error:
            raise CallRefused(_first_line(error)) from error
        finally:
            self._calls.discard(scope)
        if self.failure:
            raise await self._why_gone(self.failure)
        raise NoAnswer(f"{what} did not return within {deadline_s:g} s")

    async def send(self, method: str, params: Json | None = None, *, timeout_s: float = 0.0) -> Json:
        """A call of the DevTools protocol, for what Playwright has no cheap one for."""
        if self._protocol is None:
            self._protocol = await self.call("a session", self.page.context.new_cdp_session(self.page))
        return await self.call(method, self._protocol.send(method, params), timeout_s=timeout_s)

    async def prepare_window(self) -> None:
        """For a window that a page opened: it may have any size, and its first document came before anybody listened."""
        width, height = self._settings.viewport
        cap_s = min(_LOAD_CAP_S, self._settings.timeout_s)
        try:
            if self.page.viewport_size != {"width": width, "height": height}:
                await self.call("resizing", self.page.set_viewport_size({"width": width, "height": height}))
            await self.call("loading", self.page.wait_for_load_state(timeout=cap_s * 1000))
        except BrowserError:
            # Whoever uses it next is told.
            return
        finally:
            self.loading.on_load()

    async def settle(self, cap_s: float = _SETTLE_CAP_S) -> None:
        """Waits until the page has loaded and the network was quiet, or `cap_s` seconds."""
        await self.loading.settle(self.opening.quiet_s, cap_s)

    # pages ------------------------------------------------------------------------------------------------------------

    async def navigate(self, url: str) -> None:
        """Goes to `url`; why that failed stands in `navigation_error`."""
        await self._go(url, lambda timeout: self.page.goto(url, wait_until="commit", timeout=timeout))

    async def go_back(self) -> None:
        await self._go("the page before", lambda timeout: self.page.go_back(wait_until="commit", timeout=timeout))

    async def _go(self, where: str, go: Callable[[float], Awaitable[object]]) -> None:
        self.loading.navigation_error = ""
        cap_s = min(_LOAD_CAP_S, self._settings.timeout_s)
        try:
            await self.call("the navigation", go(cap_s * 1000), timeout_s=cap_s + _DRIVER_S)
        except NoAnswer:
            await self._give_up(where, cap_s)
            return
        except CallRefused as error:
            self.loading.navigation_error = (
                self.loading.navigation_error or f"{where[:_TEXT_LIMIT]} could not be reached: {error}"
            )
        await self.settle(_LOAD_CAP_S)

    async def _give_up(self, where: str, after_s: float) -> None:
        self.loading.navigation_error = f"{where[:_TEXT_LIMIT]} did not answer within {after_s:g} s"
        await self.send("Page.stopLoading")

    async def forget_history(self) -> None:
        """The document that is there becomes the first."""
        await self.send("Page.resetNavigationHistory")

    async def is_first(self) -> bool:
        answer = await self.send("Page.getNavigationHistory")
        return msgspec.convert(answer["currentIndex"], int) == 0

    async def wipe(self) -> None:
        """Nothing that documents have stored is left."""
        origin = self.opening.site.origin if self.opening.site is not None else ""
        await self.send("Network.clearBrowserCookies")
        await self.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})

    async def state(self) -> PageState:
        """Address, title and environment, in one round trip."""
        probe = f"(() => {{ try {{ return ({self.opening.probe}) ?? null }} catch {{ return null }} }})()"
        found = await self._evaluate(f"JSON.stringify([location.href, document.title, {probe}])")
        try:
            url, title, environment = _state_decoder.decode(str(found))
        except msgspec.DecodeError as error:
            raise PageFailed(f"the page's own state cannot be read: {error}") from error
        return PageState(
            url=url[:_TEXT_LIMIT],
            title=title[:_TEXT_LIMIT],
            environment=None
            if environment is None
            else EnvironmentState(
                environment.done, environment.reward, environment.target, environment.utterance, environment.action
            ),
        )

    async def value_of(self, expression: str) -> str:
        """The value of a JavaScript expression as text; empty when it fails or is null."""
        guarded = f"(() => {{ try {{ return String(({expression}) ?? '') }} catch {{ return '' }} }})()"
        return str(await self._evaluate(guarded))

    async def _evaluate(self, expression: str) -> object:
        """The value of a JavaScript expression; tried again when the document changes under it."""
        params: Json = {"expression": expression, "returnByValue": True}
        for last in range(_CALL_TRIES):
            navigation, whole_s = self.loading.navigation, self._settings.timeout_s
            cap_s = whole_s if navigation is None else min(_LOAD_CAP_S, whole_s)
            try:
                answer = await self.send("Runtime.evaluate", params, timeout_s=cap_s)
            except NoAnswer:
                navigation = self.loading.navigation
                if navigation is None or last == _CALL_TRIES - 1:
                    raise
                # No document answers while another site is waited for.
                await self._give_up(navigation.url, cap_s)
                continue
            except CallRefused as error:
                if last == _CALL_TRIES - 1:
                    raise PageFailed(f"the page cannot be read: {error}") from error
                await self.settle()
                continue
            break
        if "exceptionDetails" in answer:
            raise PageFailed("the page cannot be read: its script failed")
        return msgspec.convert(answer["result"], _Result).value

    async def capture(self) -> Picture:
        """A picture of the viewport, encoded once, in the browser. A capture that fails or hangs is tried again."""
        config, (width, height) = self._settings.config, self._settings.viewport
        params: Json = {"format": config.picture_format, "optimizeForSpeed": True}
        if config.picture_format == "jpeg":
            params["quality"] = config.jpeg_quality
        for last in range(_CALL_TRIES):
            try:
                answer = await self.send("Page.captureScreenshot", params, timeout_s=min(_CAPTURE_S, self._settings.timeout_s))
            except (CallRefused, NoAnswer) as error:
                if last == _CALL_TRIES - 1:
                    raise PageFailed(f"no picture could be taken: {error}") from error
                # Until the renderer has answered once more, the next capture would fail the same way.
                await self._evaluate("0")
                continue
            break
        data = base64.b64decode(msgspec.convert(answer["data"], str))
        return Picture(data=data, media_type=f"image/{config.picture_format}", width=width, height=height)


class _Result(msgspec.Struct):
    value: object = None


def _first_line(error: PlaywrightError) -> str:
    return error.message.partition("\n")[0]
