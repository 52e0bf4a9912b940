"""Writes one exchange as an entry of a HAR, without secrets. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from browser_workers.har.exchange import Exchange, Headers
from browser_workers.har.redaction import address_without, body_without, headers_without, named_cookies
from schemas.text import valid

_HTTP = "HTTP/1.1"
_LONGEST_ADDRESS = 8_000
_LONGEST_HEADER = 4_000
_MOST_HEADERS = 100
LARGEST_BODY = 256_000
"""Bytes; a larger one is not kept."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a task's evaluation looks at beside the usual."""

    cookies: frozenset[str] = frozenset()
    """Names of cookies that sites set."""
    bodies: bool = False
    """Answers that are JSON."""


@dataclass(frozen=True, slots=True)
class Written:
    entry: Mapping[str, Any]
    left_out: str = ""
    """What of it is not there, in a phrase."""


def write_entry(exchange: Exchange, wanted: Wanted) -> Written:
    sent = _kept(exchange.body, exchange.request_header("content-type"), "bodies that were sent")
    answered = _kept(exchange.response_body, exchange.response_header("content-type"), "answers")
    milliseconds = round(exchange.took_s * 1000, 3)
    entry: dict[str, Any] = {
        "startedDateTime": datetime.fromtimestamp(exchange.started_at, UTC).isoformat(timespec="milliseconds"),
        "time": milliseconds,
        "request": _request(exchange, sent),
        "response": _response(exchange, answered, wanted),
        "cache": {},
        "timings": {"send": 0, "wait": milliseconds, "receive": 0},
    }
    if exchange.error:
        entry["comment"] = valid(exchange.error, 200)
    too_long = "addresses that are too long" if len(exchange.url) > _LONGEST_ADDRESS else ""
    return Written(entry, too_long or sent.left_out or answered.left_out)


@dataclass(frozen=True, slots=True)
class _Body:
    """What is kept of one."""

    text: str = ""
    left_out: str = ""
    """Why it is not whole, in a phrase."""
    comment: str = ""


def _kept(body: bytes | None, content_type: str, what: str) -> _Body:
    if not body:
        return _Body()
    if len(body) > LARGEST_BODY:
        return _Body(left_out=f"{what} of more than {LARGEST_BODY:,} bytes")
    text = body_without(body, content_type)
    return _Body(comment="not kept: it is neither a form nor JSON") if text is None else _Body(text)


def _request(exchange: Exchange, sent: _Body) -> dict[str, Any]:
    url = address_without(exchange.url[:_LONGEST_ADDRESS])
    request: dict[str, Any] = {
        "method": exchange.method,
        "url": url,
        "httpVersion": _HTTP,
        "cookies": [],
        "headers": _headers(exchange.request_headers),
        "queryString": _pairs(parse_qsl(urlsplit(url).query, keep_blank_values=True)),
        "headersSize": -1,
        "bodySize": len(exchange.body or b""),
    }
    if exchange.body:
        request["postData"] = _text(sent, exchange.request_header("content-type"))
    return request


def _response(exchange: Exchange, answered: _Body, wanted: Wanted) -> dict[str, Any]:
    content: dict[str, Any] = {
        "size": len(exchange.response_body or b""),
        "mimeType": exchange.response_header("content-type"),
    }
    if exchange.response_body:
        content |= _text(answered, content["mimeType"])
    set_cookies = [value for name, value in exchange.response_headers if name.lower() == "set-cookie"]
    lines = [line for value in set_cookies for line in value.split("\n")]
    return {
        "status": exchange.status,
        "statusText": valid(exchange.status_text, 200),
        "httpVersion": _HTTP,
        "cookies": _pairs(named_cookies(lines, wanted.cookies).items()),
        "headers": _headers(exchange.response_headers),
        "content": content,
        "redirectURL": address_without(exchange.response_header("location")[:_LONGEST_ADDRESS]),
        "headersSize": -1,
        "bodySize": -1,
    }


def _text(body: _Body, content_type: str) -> dict[str, str]:
    said = {"comment": body.comment} if body.comment else {}
    return {"mimeType": content_type, "text": body.text, **said}


def _headers(headers: Headers) -> list[dict[str, str]]:
    return _pairs((name, valid(value, _LONGEST_HEADER)) for name, value in headers_without(headers)[:_MOST_HEADERS])


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in pairs]
