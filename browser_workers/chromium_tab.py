"""One tab of one Chromium: its events folded into a little state, and the calls that act on it.

Waiting is by events: `settle` returns when nothing loads any more, with a cap. No call outlasts its deadline.
"""

import base64
import time
from dataclasses import dataclass

import anyio
import msgspec

from browser_workers.browser import Box, EnvironmentState, Opening, PageState
from browser_workers.cdp import CallRefused, Connection, Json, text
from schemas.config import BrowserConfig
from schemas.errors import PageFailed
from schemas.messages import Picture

_CALL_TRIES = 4
_CAPTURE_S = 10.0
_SETTLE_CAP_S = 8.0
_LOAD_CAP_S = 30.0
_TEXT_LIMIT = 2000
_ENDLESS = frozenset({"EventSource", "WebSocket", "Media", "Ping", "Prefetch", "Preflight"})
"""Kinds of requests that may stay open for ever: nothing is waited for on their account."""


@dataclass(frozen=True, slots=True)
class TabSettings:
    config: BrowserConfig
    timeout_s: float
    """Deadline of one operation."""

    @property
    def viewport(self) -> tuple[int, int]:
        return self.config.viewport_width, self.config.viewport_height


class _Environment(msgspec.Struct):
    done: bool = False
    reward: float = 0.0
    target: Box | None = None
    utterance: str = ""


_state_decoder = msgspec.json.Decoder(tuple[str, str, _Environment | None], strict=False)


class Tab:
    """Lives from its attachment until it is closed, crashes, or the browser ends."""

    def __init__(self, connection: Connection, settings: TabSettings, target: str, session: str, opening: Opening) -> None:
        self.target = target
        self.session = session
        self.opening = opening
        self.failure = ""
        """Why nothing more can be had from this tab."""
        self.strayed = False
        """It has shown a document that is not the suite's."""
        self.navigation_error = ""
        self.notices: list[str] = []
        self._connection = connection
        self._settings = settings
        self._loading = False
        self._requests: set[str] = set()
        self._changed = anyio.Event()
        connection.listen(self._on_event, session)

    # life -------------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Sends everything a new tab needs and lets it go; what is called later comes after all of it."""
        width, height = self._settings.viewport
        self.post("Page.enable", {})
        if self.opening.source is not None:
            self.post("Fetch.enable", {"patterns": [{"urlPattern": f"{self.opening.source.origin}/*"}]})
        if self.opening.quiet_s > 0:
            self.post("Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0})
        metrics: Json = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.post("Emulation.setDeviceMetricsOverride", metrics)
        self.post("Runtime.runIfWaitingForDebugger", {})

    def fail(self, reason: str) -> None:
        """Ends every call under way."""
        self.failure = self.failure or reason
        self._connection.forget(self.session)
        self._note_change()

    async def call(self, method: str, params: Json | None = None, *, timeout_s: float = 0.0) -> Json:
        if self.failure:
            raise PageFailed(self.failure)
        deadline_s = timeout_s or self._settings.timeout_s
        try:
            return await self._connection.call(method, params, self.session, timeout_s=deadline_s)
        except PageFailed as error:
            raise PageFailed(self.failure or str(error)) from error

    def post(self, method: str, params: Json) -> None:
        """Sends a call whose answer does not matter, because a later one is waited for."""
        self._connection.post(method, params, self.session)

    # events -----------------------------------------------------------------------------------------------------------

    def _on_event(self, method: str, params: Json) -> None:
        match method:
            case "Page.frameStartedLoading" | "Page.frameRequestedNavigation":
                self._set_loading(params, loading=True)
            case "Page.frameStoppedLoading" | "Page.navigatedWithinDocument":
                self._set_loading(params, loading=False)
            case "Page.loadEventFired":
                self.set_loading(False)
            case "Page.frameNavigated":
                self._on_navigated(params)
            case "Page.javascriptDialogOpening":
                self._on_dialog(params)
            case "Fetch.requestPaused":
                self._serve(params)
            case "Network.requestWillBeSent" if text(params, "type") not in _ENDLESS:
                self._requests.add(text(params, "requestId"))
            case "Network.loadingFinished" | "Network.loadingFailed":
                self._requests.discard(text(params, "requestId"))
                self._note_change()
            case _:
                pass

    def _set_loading(self, params: Json, *, loading: bool) -> None:
        if text(params, "frameId") == self.target and text(params, "disposition") in ("", "currentTab"):
            self.set_loading(loading)

    def set_loading(self, loading: bool) -> None:
        self._loading = loading
        self._note_change()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _on_navigated(self, params: Json) -> None:
        if text(params, "frame", "id") != self.target:
            return
        self._requests.clear()
        source = self.opening.source
        url = text(params, "frame", "url")
        self.strayed = self.strayed or source is None or not url.startswith(f"{source.origin}/")
        unreachable = text(params, "frame", "unreachableUrl")
        if unreachable and not self.navigation_error:
            self.navigation_error = f"{unreachable[:_TEXT_LIMIT]} could not be reached"

    def _on_dialog(self, params: Json) -> None:
        kind = text(params, "type")
        self._connection.post("Page.handleJavaScriptDialog", {"accept": kind == "beforeunload"}, self.session)
        if kind != "beforeunload":
            self.notices.append(f"the page showed a dialog, which was dismissed: {text(params, 'message')[:200]!r}")

    def _serve(self, params: Json) -> None:
        """Answers for the suite's origin; what it does not have is a 404."""
        source = self.opening.source
        path = text(params, "request", "url").partition("?")[0].partition("#")[0]
        document = source.documents.get(path.removeprefix(source.origin)) if source is not None else None
        answer: Json = {
            "requestId": text(params, "requestId"),
            "responseCode": 404 if document is None else 200,
            "responseHeaders": [{"name": "Content-Type", "value": "text/html; charset=utf-8"}],
            "body": base64.b64encode(document or b"").decode(),
        }
        self._connection.post("Fetch.fulfillRequest", answer, self.session)

    # waiting ----------------------------------------------------------------------------------------------------------

    @property
    def _busy(self) -> bool:
        return self._loading or bool(self._requests)

    async def settle(self, cap_s: float = _SETTLE_CAP_S) -> None:
        """Waits until the page has loaded and the network was quiet, or `cap_s` seconds."""
        with anyio.move_on_after(cap_s):
            while not self.failure:
                if self._busy:
                    await self._changed.wait()
                elif not self.opening.quiet_s or await self._stays_quiet():
                    return

    async def _stays_quiet(self) -> bool:
        until = time.monotonic() + self.opening.quiet_s
        while (left := until - time.monotonic()) > 0:
            with anyio.move_on_after(left):
                await self._changed.wait()
            if self._busy or self.failure:
                return False
        return True

    # pages ------------------------------------------------------------------------------------------------------------

    async def navigate(self, url: str) -> None:
        """Goes to `url`; why that failed stands in `navigation_error`."""
        self.navigation_error = ""
        cap_s = min(_LOAD_CAP_S, self._settings.timeout_s)
        try:
            answer = await self.call("Page.navigate", {"url": url}, timeout_s=cap_s)
        except PageFailed:
            if self.failure:
                raise
            self.navigation_error = f"{url[:_TEXT_LIMIT]} did not answer within {cap_s:g} s"
            await self.call("Page.stopLoading")
            return
        except CallRefused as error:
            self.navigation_error = f"{url[:_TEXT_LIMIT]}: {error}"
            return
        if reason := text(answer, "errorText"):
            self.navigation_error = f"{url[:_TEXT_LIMIT]}: {reason}"
        await self.settle(_LOAD_CAP_S)

    async def history(self) -> tuple[int, list[int]]:
        """The current position, and the identities of all entries."""
        answer = await self.call("Page.getNavigationHistory")
        return msgspec.convert(answer["currentIndex"], int), [
            entry.id for entry in msgspec.convert(answer["entries"], list[_Entry])
        ]

    async def evaluate(self, expression: str) -> object:
        """The value of a JavaScript expression; tried again when the document changes under it."""
        params: Json = {"expression": expression, "returnByValue": True}
        for last in range(_CALL_TRIES):
            try:
                answer = await self.call("Runtime.evaluate", params)
            except CallRefused as error:
                if last == _CALL_TRIES - 1:
                    raise PageFailed(f"the page cannot be read: {error}") from error
                await self.settle()
                continue
            break
        if "exceptionDetails" in answer:
            raise PageFailed(f"the page cannot be read: {text(answer, 'exceptionDetails', 'text')}")
        return msgspec.convert(answer["result"], _Result).value

    async def state(self) -> PageState:
        """Address, title and environment, in one round trip."""
        probe = f"(() => {{ try {{ return ({self.opening.probe}) ?? null }} catch {{ return null }} }})()"
        found = await self.evaluate(f"JSON.stringify([location.href, document.title, {probe}])")
        try:
            url, title, environment = _state_decoder.decode(str(found))
        except msgspec.DecodeError as error:
            raise PageFailed(f"the page's own state cannot be read: {error}") from error
        return PageState(
            url=url[:_TEXT_LIMIT],
            title=title[:_TEXT_LIMIT],
            environment=None
            if environment is None
            else EnvironmentState(environment.done, environment.reward, environment.target, environment.utterance),
        )

    async def capture(self) -> Picture:
        """A picture of the viewport, encoded once, in the browser. A capture that fails or hangs is tried again."""
        config, (width, height) = self._settings.config, self._settings.viewport
        params: Json = {"format": config.picture_format, "optimizeForSpeed": True}
        if config.picture_format == "jpeg":
            params["quality"] = config.jpeg_quality
        for last in range(_CALL_TRIES):
            try:
                answer = await self.call("Page.captureScreenshot", params, timeout_s=min(_CAPTURE_S, self._settings.timeout_s))
            except (CallRefused, PageFailed) as error:
                if self.failure or last == _CALL_TRIES - 1:
                    raise PageFailed(self.failure or f"no picture could be taken: {error}") from error
                # Until the renderer has answered once more, the next capture would fail the same way.
                await self.evaluate("0")
                continue
            break
        data = base64.b64decode(text(answer, "data"))
        return Picture(data=data, media_type=f"image/{config.picture_format}", width=width, height=height)


class _Entry(msgspec.Struct):
    id: int


class _Result(msgspec.Struct):
    value: object = None
