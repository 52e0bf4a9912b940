"""Lines of a task file for MiniWoB++ pages; every instruction is what the page itself asks for under its seed."""

import json
from collections.abc import Mapping, Sequence

import anyio

from browser_workers.browser import Browser
from browser_workers.suites.miniwob.suite import NAME, MiniWobSuite
from schemas.errors import PageFailed

_SLOTS = 4
"""Pages that are read at a time."""
_ASKED_AT_ONCE = 20
"""Problems whose instructions are one text: what a page says is bounded."""
_FLIGHT, _LONG, _SHORT = 7, 4, 1
"""Difficulties: the step caps of a run (`env_config`) go by them."""
_LONG_PAGES = frozenset(
    [
        "book-flight",
        "book-flight-nodelay",
        "chase-circle",
        "choose-date",
        "choose-date-medium",
        "choose-date-nodelay",
        "click-checkboxes-large",
        "click-checkboxes-soft",
        "click-menu",
        "daily-calendar",
        "drag-cube",
        "drag-shapes",
        "drag-shapes-2",
        "form-sequence",
        "guess-number",
        "hot-cold",
        "moving-items",
        "number-checkboxes",
        "order-food",
        "simon-says",
        "social-media-all",
        "terminal",
        "text-editor",
        "tic-tac-toe",
        "use-slider",
        "use-slider-2",
        "use-spinner",
    ]
)
"""Pages that often take more than ten actions."""


async def miniwob_tasks(
    browser: Browser, suite: MiniWobSuite, pages: Sequence[str], seeds: Sequence[int], *, first_id: int = 0
) -> list[Mapping[str, object]]:
    """One line for every page and seed, page by page, numbered from `first_id`.

    Raises:
        UnknownWebsite: the package is not installed, or has no such page.
        BrowserError: a page could not be read.
    """
    utterances: dict[str, Sequence[str]] = {}
    waiting = iter(pages)

    async def read() -> None:
        for page in waiting:
            utterances[page] = await _utterances(browser, suite, page, seeds)

    async with anyio.create_task_group() as group:
        for _ in range(_SLOTS):
            group.start_soon(read)
    wanted = [(page, seed, said) for page in pages for seed, said in zip(seeds, utterances[page], strict=True)]
    return [_line(first_id + index, page, seed, said) for index, (page, seed, said) in enumerate(wanted)]


async def _utterances(browser: Browser, suite: MiniWobSuite, page: str, seeds: Sequence[int]) -> Sequence[str]:
    """The page draws one problem after the other in one tab."""
    parts = [seeds[first : first + _ASKED_AT_ONCE] for first in range(0, len(seeds), _ASKED_AT_ONCE)]
    async with browser.session(suite.resolve(page, "")) as session:
        await session.open()
        told = await session.page_values([f"JSON.stringify(millraceUtterances({list(part)}))" for part in parts])
    said: list[str] = [utterance for part in told for utterance in json.loads(part or "[]")]
    if len(said) != len(seeds) or not all(said):
        raise PageFailed(f"miniwob:{page} did not tell what it asks for under seeds {seeds[0]} to {seeds[-1]}")
    return said


def _line(task_id: int, page: str, seed: int, utterance: str) -> Mapping[str, object]:
    return {
        "task_id": task_id,
        "task_name": utterance,
        "domain": NAME,
        "subdomain": page,
        "website": f"{NAME}:{page}?seed={seed}",
        "difficulty": _difficulty(page),
        "evaluator_reference": utterance,
        "definite_answer": None,
    }


def _difficulty(page: str) -> int:
    if page.startswith("flight."):
        return _FLIGHT
    return _LONG if page in _LONG_PAGES else _SHORT
