"""What a scripted endpoint may reply: the usual answers and failures of OpenAI-compatible endpoints."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Literal

from tests.support.judging.endpoint_requests import Asked, Usage


@dataclass(frozen=True, slots=True)
class Said:
    """A completion."""

    text: str | None
    finish_reason: str = "stop"
    has_choice: bool = True

    def sent(self, model: str, usage: Usage) -> "Sent":
        return Sent(200, json.dumps(self._body(model, usage)).encode())

    def _body(self, model: str, usage: Usage) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.text, "refusal": None}
        choice = {"index": 0, "finish_reason": self.finish_reason, "message": message, "logprobs": None}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "choices": [choice] if self.has_choice else [],
            "usage": {
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "total_tokens": usage.prompt_tokens + usage.completion_tokens,
                "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
            },
        }


@dataclass(frozen=True, slots=True)
class Sent:
    """Any HTTP response."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"

    def encoded(self) -> bytes:
        headers = {"content-type": self.media_type, "content-length": str(len(self.body)), **self.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}\r\n{lines}\r\n".encode() + self.body


Broken = Literal["hang", "reset"]
HANG: Final[Broken] = "hang"
"""Nothing, until the client goes away."""
RESET: Final[Broken] = "reset"
"""The connection is reset."""

Reply = Said | Sent | Broken


def says(text: str) -> Said:
    return Said(text)


def verdict(**fields: object) -> Said:
    """The fields as a JSON object."""
    return Said(json.dumps(fields))


def truncated(text: str) -> Said:
    return Said(text, finish_reason="length")


def filtered() -> Said:
    """The filter kept the answer back."""
    return Said(None, finish_reason="content_filter")


def refused_by_filter(code: str = "content_filter") -> Sent:
    """The filter took offence at the question; `content_policy_violation` elsewhere."""
    return failed(400, code=code, message="The prompt was filtered")


def no_choices() -> Said:
    return Said(None, has_choice=False)


def no_content() -> Said:
    return Said(None)


def failed(status: int, *, code: str = "", param: str = "", message: str = "no", headers: Mapping[str, str] = {}) -> Sent:
    """An error as OpenAI words it."""
    error = {"message": message, "type": "error", "param": param or None, "code": code or None}
    return Sent(status, json.dumps({"error": error}).encode(), headers)


def rate_limited(retry_after: str) -> Sent:
    """429; `retry_after` is seconds or an HTTP date."""
    return failed(429, code="rate_limit_exceeded", headers={"retry-after": retry_after})


def out_of_quota() -> Sent:
    return failed(429, code="insufficient_quota")


def server_error(*, retry_after_ms: int | None = None) -> Sent:
    return failed(500, headers={} if retry_after_ms is None else {"retry-after-ms": str(retry_after_ms)})


def broken_body() -> Sent:
    """200, but its JSON ends in the middle."""
    return Sent(200, b'{"id": "1", "choices": [{"index"')


def html_page(status: int = 502) -> Sent:
    return Sent(status, b"<html><body><h1>Bad Gateway</h1></body></html>", media_type="text/html")


def in_turn(*replies: Reply) -> Callable[[Asked], Reply]:
    """One after another; the last one repeats."""

    def reply(asked: Asked) -> Reply:
        return replies[min(asked.index, len(replies) - 1)]

    return reply


QUICK_FAILURES: Final[tuple[Reply, ...]] = (server_error(retry_after_ms=5), rate_limited("0.005"))
"""Failures after which a client may come again at once."""


def failing(
    reply: Callable[[Asked], Reply], share: float, rng: random.Random, failures: Sequence[Reply] = QUICK_FAILURES
) -> Callable[[Asked], Reply]:
    """As `reply`, but this share of the requests fails, each in one of the ways."""

    def sometimes(asked: Asked) -> Reply:
        return rng.choice(failures) if rng.random() < share else reply(asked)

    return sometimes
