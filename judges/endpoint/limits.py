"""Reads from an endpoint's answer when it wants to be called again.

`retry-after` is seconds or an HTTP date (RFC 9110, 10.2.3); `retry-after-ms` and the `x-ratelimit-*` headers are OpenAI's,
and `RetryInfo` is Google's (google.rpc).
"""

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

from schemas.endpoint_errors import error_details

_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART: Final = re.compile(r"(?<!\d)(\d++(?:\.\d++)?+)(ms|s|m|h|d)")
_DURATION: Final = re.compile(rf"\A(?:{_PART.pattern})++")


def duration_s(text: str) -> float | None:
    """Seconds of `20ms`, `1s`, `6m0s`, or of a plain number of seconds; None: it is neither."""
    text = text.strip()
    if _DURATION.fullmatch(text):
        return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))
    return _number(text)


def retry_after_s(headers: Mapping[str, str], body: object, *, now: float) -> float | None:
    """Seconds until the endpoint that refused a call takes one; None: it does not say.

    Where it states a date, that is by its own clock, and so is the `date` of its answer; `now` (of the epoch): for none.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    stated = headers.get("retry-after", "")
    seconds = _number(stated)
    if seconds is None:
        seconds = _until_date(stated, headers.get("date", ""), now)
    return seconds if seconds is not None else _retry_info(body)


def exhausted_for_s(headers: Mapping[str, str]) -> float:
    """Seconds until the endpoint takes a call again, by the limits that it says are used up; 0: none is."""
    waits = [0.0]
    for kind in ("requests", "tokens"):
        if headers.get(f"x-ratelimit-remaining-{kind}", "").strip() == "0":
            waits.append(duration_s(headers.get(f"x-ratelimit-reset-{kind}", "")) or 0.0)
    return max(waits)


def _retry_info(body: object) -> float | None:
    for detail in error_details(body):
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and (seconds := duration_s(delay)) is not None:
            return seconds
    return None


def _until_date(text: str, said_at: str, now: float) -> float | None:
    date_s, said_s = _date_s(text), _date_s(said_at)
    return None if date_s is None else max(0.0, date_s - (now if said_s is None else said_s))


def _date_s(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None
