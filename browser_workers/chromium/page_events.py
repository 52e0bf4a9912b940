"""Handles what happens beside an episode's actions: dialogs, downloads, file choosers. Each is said in words.

Invariants: nothing here waits for longer than a moment, so no page can hold its episode up; whatever a page does, what is kept
is bounded.
"""

from contextlib import suppress

import anyio
from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext, Dialog, Download, Page
from playwright.async_api import Error as PlaywrightError

from browser_workers.chromium.events import listen

_MAX_NOTICES = 8
_TEXT_LIMIT = 200
MAX_DIALOGS = 16
"""Behind one input: `scripts/bounds.js` sees to it."""
_NOTICE_LIMIT = 1500
_APPEARS_S = 1.0


class PageEvents:
    """Of one browser context."""

    def __init__(self, context: BrowserContext, group: TaskGroup, *, timeout_s: float) -> None:
        self._group = group
        """Where what events ask for is done."""
        self._timeout_s = timeout_s
        self._notices: dict[str, int] = {}
        """Sentences, and how often each was true."""
        self._num_dialogs = 0
        self._download = anyio.Event()
        """The first since the input."""
        listen(context, "dialog", self._on_dialog)

    def watch(self, page: Page) -> None:
        listen(page, "download", self._on_download)
        # Whoever listens keeps Chromium from opening one; the page's side_effects say that it wanted to.
        listen(page, "filechooser", lambda _: None)

    def note(self, sentence: str) -> None:
        sentence = sentence[:_NOTICE_LIMIT]
        if sentence in self._notices or len(self._notices) < _MAX_NOTICES:
            self._notices[sentence] = self._notices.get(sentence, 0) + 1

    def begin_input(self) -> None:
        """What comes next follows another input."""
        self._num_dialogs = 0
        self._download = anyio.Event()

    async def downloaded(self) -> None:
        """Waits a moment for a download that a page has announced."""
        with anyio.move_on_after(_APPEARS_S):
            await self._download.wait()

    def take(self) -> str:
        """Everything since the last time, in words."""
        notices, self._notices = self._notices, {}
        return "; ".join(f"{text} ({count} times)" if count > 1 else text for text, count in notices.items())

    # events -----------------------------------------------------------------------------------------------------------

    def _on_dialog(self, dialog: Dialog) -> None:
        self._group.start_soon(self._answer, dialog)
        if dialog.type == "beforeunload":
            self.note("the page asked whether to leave it, and was left")
        else:
            self._num_dialogs += 1
            if self._num_dialogs == MAX_DIALOGS:
                self.note(f"after {MAX_DIALOGS} dialogs the page can show no more")
            self.note(f"the page showed a dialog ({dialog.type}), which was dismissed: {dialog.message[:_TEXT_LIMIT]!r}")

    async def _answer(self, dialog: Dialog) -> None:
        with anyio.move_on_after(self._timeout_s), suppress(PlaywrightError):
            await (dialog.accept() if dialog.type == "beforeunload" else dialog.dismiss())

    def _on_download(self, download: Download) -> None:
        self._download.set()
        self.note(f"a download was refused: {download.suggested_filename[:_TEXT_LIMIT]!r}")
