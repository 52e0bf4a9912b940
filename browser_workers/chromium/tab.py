"""One page of one episode: what is known of it, and what is asked of it.

Waiting is by events: `settle` returns when neither the network nor the page does anything, with a cap. No call outlasts its
deadline.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from anyio.abc import TaskGroup
from playwright.async_api import CDPSession, Page, Request

from browser_workers.blockages.facts import PageFacts
from browser_workers.browser import Opening, PageState
from browser_workers.chromium.barriers import Barriers
from browser_workers.chromium.calls import Calls
from browser_workers.chromium.capture import capture
from browser_workers.chromium.document_limit import DocumentLimit
from browser_workers.chromium.evaluation import LOAD_CAP_S, Evaluation
from browser_workers.chromium.loading import Loading
from browser_workers.chromium.navigation import Navigation
from browser_workers.chromium.page_frames import PageFrames
from browser_workers.chromium.page_stability import PageStability
from browser_workers.chromium.settings import TabSettings
from schemas.errors import BrowserError
from schemas.messages import Screenshot

T = TypeVar("T")
_SETTLE_CAP_S = 8.0
_TEXT_LIMIT = 40_000
_VALUE_LIMIT = 100_000


class Tab:
    """Lives until its page is closed, crashes, or the browser ends."""

    def __init__(
        self,
        page: Page,
        settings: TabSettings,
        opening: Opening,
        why_gone: Callable[[str], Awaitable[BrowserError]],
        group: TaskGroup,
        note: Callable[[str], None],
        give_up: Callable[[str], None],
        *,
        loading: bool,
    ) -> None:
        self.page = page
        self._settings = settings
        self._calls = Calls(page, why_gone, timeout_s=settings.timeout_s)
        self.call, self.send = self._calls.call, self._calls.send
        self.frames = PageFrames(page, self._calls)
        origin = opening.site.origin if opening.site is not None else ""
        self.loading = Loading(page, origin, settings.why_blocked, loading=loading)
        self.navigation = Navigation(self._calls, self.loading, settings.why_blocked)
        self.documents = DocumentLimit(self._calls, group, note, give_up, self.loading)
        self._evaluation = Evaluation(self._calls, self.loading, self.documents, self.navigation.give_up)
        self.stability = PageStability(opening, self._calls, self.loading, self._evaluation)
        self._barriers = Barriers(self._calls, self.loading, self._evaluation)

    @property
    def opening(self) -> Opening:
        return self.stability.opening

    @opening.setter
    def opening(self, opening: Opening) -> None:
        self.stability.opening = opening

    @property
    def failure(self) -> str:
        """Why nothing more can be had from this tab; empty while it lives."""
        return self._calls.failure

    def fail(self, reason: str, kind: type[BrowserError] | None = None) -> None:
        """Ends every call under way, as `kind` where that is known."""
        self._calls.fail(reason, kind)
        self.loading.end()

    def on_request(self, request: Request) -> None:
        if self.documents.admits(request):
            self.loading.on_request(request)

    async def prepare(self) -> CDPSession:
        """A session that is there before a document can stop one of its scripts; a later one waits for the script's end."""
        return await self._calls.open_session()

    async def prepare_window(self) -> None:
        """For a window that a page opened: it may have any size, and its first document came before anybody listened."""
        width, height = self._settings.viewport
        cap_s = min(LOAD_CAP_S, self._settings.timeout_s)
        try:
            if self.page.viewport_size != {"width": width, "height": height}:
                await self.call("resizing", self.page.set_viewport_size({"width": width, "height": height}))
            await self.call("loading", self.page.wait_for_load_state(timeout=cap_s * 1000))
        except BrowserError:
            # Whoever uses it next is told.
            return
        finally:
            self.loading.on_load()

    async def wipe(self) -> None:
        """Nothing that documents have stored is left."""
        self.begin_action()
        self.stability.take_side_effects()
        origin = self.opening.site.origin if self.opening.site is not None else ""
        await self.send("Network.clearBrowserCookies")
        await self.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})

    # actions ----------------------------------------------------------------------------------------------------------

    def begin_action(self) -> None:
        """What the page was no longer holds."""
        self.loading.navigation_error = ""
        self.stability.disturb()

    async def navigate(self, url: str) -> None:
        """Goes to `url`; why that failed stands in `loading.navigation_error`."""
        self.stability.disturb()
        await self.navigation.to(url)
        await self.settle(LOAD_CAP_S)

    async def go_back(self) -> None:
        self.stability.disturb()
        await self.navigation.back()
        await self.settle(LOAD_CAP_S)

    # what there is ----------------------------------------------------------------------------------------------------

    async def settle(self, cap_s: float = 0.0) -> None:
        """Waits until page and network have come to rest, or `cap_s` seconds, or what three operations may take.

        `cap_s`: 0 is what an action may set off.
        """
        await self.stability.settle(min(cap_s or _SETTLE_CAP_S, 3 * self._settings.timeout_s))

    async def arrive(self) -> None:
        """Whatever site was asked for when settling ended has answered afterwards, or has been given up."""
        if await self.navigation.arrive():
            await self.settle()

    async def state(self) -> PageState:
        """Address, title and environment."""
        return await self.stability.state()

    async def text(self, num_lines: int) -> str:
        """The first lines of the visible text, empty ones left out."""
        return str(await self._evaluation.own(f"text({num_lines}, {_TEXT_LIMIT})"))

    async def facts(self) -> PageFacts:
        """What says whether the document is a block. Raises `PageFailed` or `BrowserLost`."""
        return await self._barriers.look()

    async def value_of(self, expression: str) -> str:
        """The value of a JavaScript expression as text, its beginning at least; empty when it fails or is null."""
        value = await self._evaluation.page(f"`${{({expression}) ?? ''}}`", most=_VALUE_LIMIT)
        return value if isinstance(value, str) else ""

    async def capture(self, *, jpeg_quality: int = 0) -> Screenshot:
        """A screenshot of the viewport, where it is a JPEG with the configured quality or `jpeg_quality`.

        Raises `PageFailed` or `BrowserLost`.
        """
        return await capture(
            self._calls, self._settings, lambda: self._evaluation.own("state(false)"), jpeg_quality=jpeg_quality
        )
