"""Task suites: what a task's `website` stands for. A suite is an adapter from `name:page?query` to an `Opening`."""

from collections.abc import Mapping
from typing import Protocol

from browser_workers.actions import web_address
from browser_workers.browser import Opening
from schemas.errors import MillraceError


class UnknownWebsite(MillraceError):
    """A task names a website that no suite of this worker can open: its episode ends as failed."""


class Suite(Protocol):
    """Pages that are played without the web."""

    def resolve(self, page: str, query: str) -> Opening:
        """Raises `UnknownWebsite` when the suite has no such page."""
        ...


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
