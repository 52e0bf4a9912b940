"""A web site that the worker plays itself: a request in, a response out. Requests to its origin go
no further than to the episode's gate, in the same process (`browser_workers.network.played_site`).

Invariant: a site keeps nothing between requests. What a visitor has done lives in the visitor's own browser (cookies, storage,
addresses), so that a fresh context is a fresh site and episodes cannot meet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class SiteRequest:
    path: str
    """As in `/cart`."""
    query: str = ""
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class SiteResponse:
    body: bytes = b""
    status: int = 200
    content_type: str = HTML
    headers: Mapping[str, str] = field(default_factory=dict)
    after_s: float = 0.0
    """Seconds that the visitor waits for it."""
    breaks_off: bool = False
    """The connection is reset instead."""


NOT_FOUND = SiteResponse(status=404, body=b"not found", content_type="text/plain")


class Site(Protocol):
    @property
    def origin(self) -> str:
        """Scheme and host, as in `http://demo.millrace.test`; never looked up."""
        ...

    def respond(self, request: SiteRequest) -> SiteResponse: ...


@dataclass(frozen=True, slots=True)
class Documents:
    """The simplest site: HTML by path."""

    origin: str
    documents: Mapping[str, bytes]

    def respond(self, request: SiteRequest) -> SiteResponse:
        document = self.documents.get(request.path)
        return NOT_FOUND if document is None else SiteResponse(document)
