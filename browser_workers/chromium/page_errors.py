"""Collects what fails on an episode's pages, in words: errors of the console, exceptions that nothing caught, requests that
got no answer or a bad one. Listens to nothing where the run does not show it.

Invariant: whatever a page does, what is kept is bounded; addresses are kept without what stands behind their `?`.
"""

from collections import Counter
from collections.abc import Callable

from playwright.async_api import BrowserContext, ConsoleMessage, Request, Response, WebError

from browser_workers.chromium.events import listen

MOST = 20
"""Different ones between two looks."""
_TEXT_LIMIT = 200
_BAD_STATUS = 400
_MORE = "and others"
MOST_SAID = 200
"""Things that the console shows between two actions, after which it is not listened to: each costs the driver and this process
more than it costs the page."""
_LONG = 16 * 1024
"""Characters from which on one counts by these instead (`process/kept.py`)."""
_GIVEN_UP = "net::ERR_ABORTED"
"""The page itself went on without the answer."""
_SAID_OF_REQUESTS = "Failed to load resource"
"""What Chromium writes to the console about a request that is told of here."""


class PageErrors:
    """Of one browser context."""

    def __init__(self, context: BrowserContext, *, listens: bool) -> None:
        self._context = context
        self._listens = listens
        self._end_listening: Callable[[], None] | None = None
        """To the console."""
        self.begin()
        if listens:
            heard: dict[str, Callable[..., None]] = {
                "weberror": self._on_exception,
                "requestfailed": self._on_unanswered,
                "response": self._on_response,
            }
            for event, listener in heard.items():
                listen(context, event, listener)

    def begin(self) -> None:
        """Another episode's from now on."""
        self._met: Counter[str] = Counter()
        """Lines, and how often each came."""
        self._told: Counter[str] = Counter()
        """Of them, what was read."""
        self._listen_to_console()

    def begin_action(self) -> None:
        """What was read is known; what came since is told after the action."""
        self._met -= self._told
        self._told.clear()
        self._listen_to_console()

    def _listen_to_console(self) -> None:
        self._num_said = 0
        if self._listens and self._end_listening is None:
            self._end_listening = listen(self._context, "console", self._on_console)

    def read(self) -> tuple[str, ...]:
        """What is not known yet, a line each."""
        self._told = self._met.copy()
        return tuple(f"{line} ({count} times)" if count > 1 else line for line, count in self._met.items())

    def _note(self, line: str) -> None:
        line = line[:_TEXT_LIMIT]
        self._met[line if line in self._met or len(self._met) < MOST else _MORE] += 1

    # events -----------------------------------------------------------------------------------------------------------

    def _on_console(self, message: ConsoleMessage) -> None:
        num_shown = max(1, len(message.args))
        if len(message.text) < _LONG * num_shown:
            self._num_said += num_shown
        if self._num_said > MOST_SAID and self._end_listening is not None:
            self._end_listening()
            self._end_listening = None
            self._met[_MORE] += 1
        if message.type == "error" and not message.text.startswith(_SAID_OF_REQUESTS):
            self._note(f"console: {message.text[:_TEXT_LIMIT]}")

    def _on_exception(self, met: WebError) -> None:
        self._note(f"uncaught: {str(met.error)[:_TEXT_LIMIT]}")

    def _on_unanswered(self, request: Request) -> None:
        if request.failure and request.failure != _GIVEN_UP:
            self._note(f"{_asked(request)}: {request.failure}")

    def _on_response(self, response: Response) -> None:
        if response.status >= _BAD_STATUS:
            self._note(f"{_asked(response.request)}: {response.status} {response.status_text}".rstrip())


def _asked(request: Request) -> str:
    address = request.url.partition("?")[0]
    return f"{request.method} {address[: _TEXT_LIMIT // 2]}"
