"""Lines of a task file for MiniWoB++ pages; every instruction is what the page itself asks for under its seed."""

import math
from collections.abc import Mapping, Sequence

import anyio

from browser_workers.browser import Browser
from browser_workers.suites.miniwob.suite import NAME, MiniWobSuite
from schemas.errors import PageFailed

_SLOTS = 4
"""Pages that are read at a time."""
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
    wanted = [(page, seed) for page in pages for seed in seeds]
    utterances: dict[tuple[str, int], str] = {}
    share = math.ceil(len(wanted) / _SLOTS) or 1

    async def read(part: Sequence[tuple[str, int]]) -> None:
        for page, seed in part:
            utterances[page, seed] = await _utterance(browser, suite, page, seed)

    async with anyio.create_task_group() as group:
        for start in range(0, len(wanted), share):
            group.start_soon(read, wanted[start : start + share])
    return [_line(first_id + index, page, seed, utterances[page, seed]) for index, (page, seed) in enumerate(wanted)]


async def _utterance(browser: Browser, suite: MiniWobSuite, page: str, seed: int) -> str:
    async with browser.session(suite.resolve(page, f"seed={seed}")) as session:
        await session.open()
        environment = (await session.state()).environment
    if environment is None or not environment.utterance:
        raise PageFailed(f"miniwob:{page}?seed={seed} did not begin")
    return environment.utterance


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
