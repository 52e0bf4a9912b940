"""Classifies requests without an answer: to wait, to ask otherwise, or to give up. Decides, and waits for nothing."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import openai

from bus.retry import Backoff
from judges.endpoint.limits import exhausted_for_s, retry_after_s
from schemas.endpoint_errors import is_of_filter, is_of_key

_TRIED_AGAIN: Final = Backoff(0.5, 60.0)
PERSON_AWAITED_S: Final = 60.0
"""Between two tries of what a person must mend, as an account whose quota is used up."""

_QUOTA_CODES: Final = ("insufficient_quota",)
_MESSAGES: Final = "messages"
_NOT_OF_FORM: Final = (_MESSAGES, "model", "temperature", "max_completion_tokens")
"""Arguments of a request that say nothing of the form of its answer."""
_MAX_SAID: Final = 300


@dataclass(frozen=True, slots=True)
class Retry:
    """It may yet succeed."""

    reason: str
    after_s: float | None = None
    """What the endpoint asked for; None: it did not say."""
    for_all: bool = False
    """Nobody is to call there until then."""
    for_a_person: bool = False
    """It will only succeed once somebody does something."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The endpoint does not take the request as it stands: its form, or the question itself."""

    reason: str
    parameter: str = ""
    """The one that it names as the cause, as in `temperature`."""

    @property
    def may_be_of_form(self) -> bool:
        """Whether the form of answer that was asked for may be the cause."""
        return re.split(r"[.\[]", self.parameter)[0] not in _NOT_OF_FORM


@dataclass(frozen=True, slots=True)
class Filtered:
    """The endpoint's content filter took offence at the question."""

    reason: str


@dataclass(frozen=True, slots=True)
class Misconfigured:
    """The endpoint refuses the key, or does not know the model or the path."""

    reason: str


Fault = Retry | Refused | Filtered | Misconfigured


def fault_of(error: openai.OpenAIError, *, now: float) -> Fault:
    """`now` is of the epoch, for delays that are stated as dates."""
    if isinstance(error, openai.APITimeoutError):
        return Retry("no answer in time")
    if isinstance(error, openai.APIConnectionError):
        return Retry(f"no connection ({type(error.__cause__).__name__})" if error.__cause__ else "no connection")
    if not isinstance(error, openai.APIStatusError):
        return Retry(f"an answer that is none ({type(error).__name__})")
    return _fault_of_status(error, now)


def backoff_s(num_failures: int, rng: random.Random) -> float:
    """Exponential with full jitter: uniform between 0 and 0.5 s, 1 s, 2 s ... 60 s after the first, second, third failure."""
    return _TRIED_AGAIN.drawn_s(num_failures, rng)


def _fault_of_status(error: openai.APIStatusError, now: float) -> Fault:
    status, code = error.status_code, error.code or ""
    reason = f"{status} {code}".strip() if code != str(status) else code
    if status < 500 and is_of_filter(code):
        return Filtered(reason)
    if status in (401, 403) or is_of_key(error.body):
        # Without the endpoint's words: some repeat the key, or the most of it.
        return Misconfigured(reason)
    if status < 400:
        return Misconfigured(f"{reason}: it sends callers to another address")
    if status == 404:
        return Misconfigured(reason + _said(error))
    if status in (402, 408, 409, 429) or status >= 500:
        return _retry(error, reason, now)
    return Refused(reason + _said(error), error.param or (_MESSAGES if status == 413 else ""))


def _retry(error: openai.APIStatusError, reason: str, now: float) -> Retry:
    headers = error.response.headers
    after_s = retry_after_s(headers, error.body, now=now)
    if error.status_code == 402 or error.code in _QUOTA_CODES:
        pause_s = max(after_s or 0.0, PERSON_AWAITED_S)
        return Retry(f"{reason}: the account's quota is used up", pause_s, for_all=True, for_a_person=True)
    if error.status_code == 429:
        return Retry(reason + _said(error), exhausted_for_s(headers) or None if after_s is None else after_s, for_all=True)
    return Retry(reason, after_s)


def _said(error: openai.APIStatusError) -> str:
    """The message of the endpoint itself, not the whole body."""
    body = error.body[0] if isinstance(error.body, list) and error.body else error.body
    body = body.get("error", body) if isinstance(body, Mapping) else None
    said = body.get("message") if isinstance(body, Mapping) else None
    return f" ({' '.join(said.split())[:_MAX_SAID]})" if isinstance(said, str) and said else ""
