"""Tells an attempt's log what its pages send and get, from Playwright's events. Listens to nothing where there is no log.

Invariant: what a page does here fails nothing and holds nobody up.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import anyio
import structlog
from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext, Request, Response
from playwright.async_api import Error as PlaywrightError

from browser_workers.chromium.events import listen
from browser_workers.har.entry import LARGEST_BODY
from browser_workers.har.exchange import Exchange, Headers
from browser_workers.har.log import UNREAD, NetworkLog
from bus.fault import Fault

_UNKEPT = frozenset({"image", "media", "font", "stylesheet", "script", "texttrack", "manifest", "websocket"})
_ANSWER_S = 5.0
"""For what the browser has to say of one exchange that is over."""
_JSON = "json"
_UNANSWERED = "no answer came while this was recorded"
_log = structlog.get_logger()


class Recording:
    """Of one browser context, for one log after the other."""

    def __init__(self, context: BrowserContext, group: TaskGroup) -> None:
        self._context = context
        self._group = group
        self._log: NetworkLog | None = None
        self._listens = False
        self._places: dict[Request, int] = {}

    def begin(self, log: NetworkLog | None) -> None:
        """What comes next belongs to this log."""
        self._log = log
        self._places.clear()
        if log is None or self._listens:
            return
        self._listens = True
        listen(self._context, "request", self._on_request, self._lose)
        listen(self._context, "requestfinished", self._on_over, self._lose)
        listen(self._context, "requestfailed", self._on_over, self._lose)

    def _on_request(self, request: Request) -> None:
        log = self._log
        if log is None or request.resource_type in _UNKEPT or not request.url.startswith(("http://", "https://")):
            return
        place = log.begin(replace(_asked(request), error=_UNANSWERED))
        if place is not None:
            self._places[request] = place

    def _on_over(self, request: Request) -> None:
        place = self._places.pop(request, None)
        if place is not None and self._log is not None:
            self._log.over(place)
            self._group.start_soon(self._complete, self._log, request, place)

    async def _complete(self, log: NetworkLog, request: Request, place: int) -> None:
        exchange: Exchange | None = None
        try:
            with anyio.move_on_after(_ANSWER_S):
                exchange = await _exchange(request, bodies=log.wanted.bodies)
                log.put(place, exchange)
        except PlaywrightError:
            # The page is gone.
            pass
        except Exception as error:  # noqa: BLE001 - a bulkhead: the group is the whole browser's
            _log.error("request_not_recorded", error=Fault.of(error).error, exc_info=error)
        finally:
            if exchange is None:
                log.lose(UNREAD, place)

    def _lose(self, reason: str) -> None:
        if self._log is not None:
            self._log.lose(f"requests that were not understood ({reason})")


def _asked(request: Request) -> Exchange:
    return Exchange(
        method=request.method,
        url=request.url,
        started_at=max(0.0, request.timing["startTime"] / 1000),
        request_headers=_pairs(request.headers),
        body=request.post_data_buffer,
    )


async def _exchange(request: Request, *, bodies: bool) -> Exchange:
    """Raises `playwright.async_api.Error`."""
    if request.failure:
        return replace(_asked(request), error=request.failure)
    exchange = replace(_asked(request), request_headers=_pairs(await request.all_headers()))
    response = await request.response()
    if response is None:
        return replace(exchange, error=_UNANSWERED)
    headers = await response.headers_array()
    exchange = replace(
        exchange,
        status=response.status,
        status_text=response.status_text,
        response_headers=tuple((header["name"], header["value"]) for header in headers),
        took_s=max(0.0, request.timing["responseEnd"] / 1000),
    )
    return replace(exchange, response_body=await _body(response)) if bodies and _is_json(exchange) else exchange


async def _body(response: Response) -> bytes | None:
    """One byte more than is kept, of one that is too large."""
    with suppress(PlaywrightError):
        return (await response.body())[: LARGEST_BODY + 1]
    return None


def _is_json(exchange: Exchange) -> bool:
    return _JSON in exchange.response_header("content-type").lower()


def _pairs(headers: Mapping[str, str]) -> Headers:
    return tuple(headers.items())
