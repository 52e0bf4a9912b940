"""Takes a page to an address or back, and says why when it did not get there."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import msgspec

from browser_workers.chromium.calls import DRIVER_S, CallRefused, Calls, NoAnswer
from browser_workers.chromium.evaluation import LOAD_CAP_S
from browser_workers.chromium.loading import Loading
from browser_workers.chromium.navigation_errors import unanswered, unreachable


class Navigation:
    """Of one page. Why the last one failed stands in `Loading.navigation_error`."""

    def __init__(self, calls: Calls, loading: Loading, why_blocked: Callable[[str], str]) -> None:
        self._calls = calls
        self._loading = loading
        self._why_blocked = why_blocked
        self._is_history_own = True
        """Whether no page in it is from before the first."""

    async def to(self, url: str) -> None:
        """Returns when the document begins to come, or when none will."""
        await self._go(url, lambda timeout: self._calls.page.goto(url, wait_until="commit", timeout=timeout))

    async def back(self) -> None:
        await self._go("the page before", lambda timeout: self._calls.page.go_back(wait_until="commit", timeout=timeout))

    async def _go(self, where: str, go: Callable[[float], Awaitable[object]]) -> None:
        self._loading.navigation_error = ""
        cap_s = min(LOAD_CAP_S, self._calls.timeout_s)
        try:
            await self._calls.call("the navigation", go(cap_s * 1000), timeout_s=cap_s + DRIVER_S)
        except NoAnswer:
            await self.give_up(where, cap_s)
        except CallRefused as error:
            said = self._loading.navigation_error
            self._loading.navigation_error = said or unreachable(where, str(error), self._why_blocked)

    async def arrive(self) -> bool:
        """Waits for the document that was asked for, which is given up when it does not come; whether there was one."""
        asked = self._loading.navigation
        if asked is None:
            return False
        cap_s = min(LOAD_CAP_S, self._calls.timeout_s)
        with anyio.move_on_after(cap_s):
            await self._loading.answered(asked)
        if self._loading.navigation is asked:
            await self.give_up(asked.url, cap_s)
        return True

    async def give_up(self, where: str, after_s: float) -> None:
        self._loading.navigation_error = unanswered(where, after_s)
        await self._calls.send("Page.stopLoading")

    async def forget_history(self) -> None:
        """The document that is there becomes the first. Where that cannot be had there is no way back."""
        self._is_history_own = False
        with suppress(CallRefused, NoAnswer):
            await self._calls.send("Page.resetNavigationHistory")
            self._is_history_own = True

    async def is_first(self) -> bool:
        if not self._is_history_own:
            return True
        answer = await self._calls.send("Page.getNavigationHistory")
        return msgspec.convert(answer["currentIndex"], int) == 0
