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
    browser: Browser,
    suite: MiniWobSuite,
    pages: Sequence[str],
    seeds: Sequence[int],
    *,
    num_each: int | None = None,
    first_id: int = 0,
) -> list[Mapping[str, object]]:
    """One line for every page and seed, page by page, numbered from `first_id`.

    Args:
        num_each: so many of every page, the first whose problems need something to be done: a list may stand at what is asked
            for already, and whoever learns from that learns to press Submit.

    Raises:
        UnknownWebsite: the package is not installed, or has no such page.
        BrowserError: a page could not be read.
    """
    problems: dict[str, Sequence[tuple[int, str]]] = {}
    waiting = iter(pages)

    async def read() -> None:
        for page in waiting:
            problems[page] = await _problems(browser, suite, page, seeds, num_each)

    async with anyio.create_task_group() as group:
        for _ in range(_SLOTS):
            group.start_soon(read)
    wanted = [(page, seed, said) for page in pages for seed, said in problems[page]]
    return [_line(first_id + index, page, seed, said) for index, (page, seed, said) in enumerate(wanted)]


async def _problems(
    browser: Browser, suite: MiniWobSuite, page: str, seeds: Sequence[int], num_wanted: int | None
) -> Sequence[tuple[int, str]]:
    """Seeds with what the page asks for, which draws one problem after the other in one tab."""
    found: list[tuple[int, str]] = []
    async with browser.session(suite.resolve(page, "")) as session:
        await session.open()
        for first in range(0, len(seeds), _ASKED_AT_ONCE):
            if num_wanted is not None and len(found) >= num_wanted:
                break
            part = seeds[first : first + _ASKED_AT_ONCE]
            tried = json.dumps(num_wanted is not None)
            (told,) = await session.page_values([f"JSON.stringify(millraceProblems({list(part)}, {tried}))"])
            problems = json.loads(told or "[]")
            if len(problems) != len(part) or not all(said for said, _ in problems):
                raise PageFailed(f"miniwob:{page} did not tell what it asks for under seeds {part[0]} to {part[-1]}")
            found += [(seed, said) for seed, (said, content) in zip(part, problems, strict=True) if not content]
    if num_wanted is not None and len(found) < num_wanted:
        raise PageFailed(
            f"miniwob:{page} asks for something under {len(found)} of {len(seeds)} seeds, and {num_wanted} are wanted"
        )
    return found[:num_wanted]


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
