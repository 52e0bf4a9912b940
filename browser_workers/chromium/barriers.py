"""Reads what of a page may say that it keeps its visitor out; `browser_workers.blockages` says what it means."""

import json

import msgspec
from playwright.async_api import Request, Response

from browser_workers.blockages.facts import Embedded, PageFacts
from browser_workers.blockages.signs import ELEMENTS
from browser_workers.chromium.calls import CallRefused, Calls, NoAnswer
from browser_workers.chromium.evaluation import Evaluation
from browser_workers.chromium.loading import Loading

_CALL = f"barriers({json.dumps(ELEMENTS)})"


class _Found(msgspec.Struct):
    url: str
    title: str
    text: str
    num_characters: int
    num_fields: int
    scripts: tuple[str, ...]
    frames: tuple[Embedded, ...]
    elements: frozenset[str]


class Barriers:
    """Of one page."""

    def __init__(self, calls: Calls, loading: Loading, evaluation: Evaluation) -> None:
        self._calls = calls
        self._loading = loading
        self._evaluation = evaluation
        self._asked: Request | None = None
        self._answer: Response | None = None

    async def look(self) -> PageFacts:
        """One round trip, and another for a new document. Raises `PageFailed` or `BrowserLost`."""
        found = msgspec.convert(await self._evaluation.own(_CALL), _Found)
        answer = await self._answered()
        return PageFacts(
            url=found.url,
            title=found.title,
            status=answer.status if answer is not None else 0,
            headers=answer.headers if answer is not None else {},
            text=found.text,
            num_characters=found.num_characters,
            num_fields=found.num_fields,
            scripts=found.scripts,
            frames=found.frames,
            elements=found.elements,
        )

    async def _answered(self) -> Response | None:
        """With which the document that is shown was had."""
        request = self._loading.document
        if request is not None and request is not self._asked:
            try:
                self._answer = await self._calls.call("the site's answer", request.response())
            except (CallRefused, NoAnswer):
                self._answer = None
            self._asked = request
        return self._answer if request is not None else None
