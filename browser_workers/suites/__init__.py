"""Task suites, one a file or folder: what a task's `website` stands for.

A suite is an adapter from `name:page?query` to an `Opening`, and is made without arguments:

    @suite("maze")
    class MazeSuite:
        def resolve(self, page: str, query: str) -> Opening:
            return Opening(url=f"{ORIGIN}/{page}", site=Documents(ORIGIN, {"/small": SMALL}), probe="window.maze")
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeVar

from browser_workers.actions import web_address
from browser_workers.browser import Opening
from schemas.errors import MillraceError
from schemas.extensions import SUITES


class UnknownWebsite(MillraceError):
    """A task names a website that no suite of this worker can open: its episode ends as failed."""


class Suite(Protocol):
    """Pages that are played without the web."""

    def resolve(self, page: str, query: str) -> Opening:
        """Raises `UnknownWebsite` when the suite has no such page."""
        ...


def probe_at(url: str, probe: str) -> str:
    """An `Opening.probe` that is null at every other address: another page, or another seed, is not what was asked for."""
    return f"location.href.split('#')[0] === {json.dumps(url)} ? {probe} : null"


_Class = TypeVar("_Class", bound=Callable[[], Suite])


def suite(name: str) -> Callable[[_Class], _Class]:
    """Declares the suite whose pages are called `name:page`."""
    return lambda made: SUITES.declare(name, made, None)


def open_suites(more: Iterable[str] = ()) -> dict[str, Suite]:
    """By name: Millrace's own, those of installed packages, and `more`. Raises `ConfigurationError`."""
    return {part.name: part.made() for part in SUITES.all(more)}


def resolve(website: str, suites: Mapping[str, Suite]) -> Opening:
    """How a task's website is opened: a page of a suite, or a http(s) address without an environment of its own.

    Raises:
        UnknownWebsite: it is neither; the message says what to write.
    """
    name, colon, rest = website.partition(":")
    if colon and name in suites:
        page, _, query = rest.partition("?")
        return suites[name].resolve(page, query)
    if url := web_address(website):
        return Opening(url=url)
    names = ", ".join(f"{name}:" for name in suites)
    raise UnknownWebsite(f"website {website!r} cannot be opened: write a http(s) address, or a page of a suite ({names})")
