"""What happens beside an episode's actions: dialogs and windows. Each is handled at once and said in words to the policy.

Invariant: nothing here waits for anybody, so no page can hold its episode up.
"""

from contextlib import suppress

import anyio
from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext, Dialog
from playwright.async_api import Error as PlaywrightError

_MAX_NOTICES = 8
_TEXT_LIMIT = 200


class Happenings:
    """Of one browser context."""

    def __init__(self, context: BrowserContext, group: TaskGroup, *, timeout_s: float) -> None:
        self._group = group
        """Where what events ask for is done."""
        self._timeout_s = timeout_s
        self._notices: list[str] = []
        context.on("dialog", self._on_dialog)

    def note(self, sentence: str) -> None:
        if len(self._notices) < _MAX_NOTICES:
            self._notices.append(sentence)

    def take(self) -> str:
        """Everything since the last time, in words."""
        notices, self._notices = self._notices, []
        return "; ".join(notices)

    def _on_dialog(self, dialog: Dialog) -> None:
        if dialog.type != "beforeunload":
            self.note(f"the page showed a dialog, which was dismissed: {dialog.message[:_TEXT_LIMIT]!r}")
        self._group.start_soon(self._answer, dialog)

    async def _answer(self, dialog: Dialog) -> None:
        with anyio.move_on_after(self._timeout_s), suppress(PlaywrightError):
            await (dialog.accept() if dialog.type == "beforeunload" else dialog.dismiss())
