"""Moments as people write them on a command line."""

import re
from datetime import datetime, timedelta

_AGO = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def time_of(text: str) -> datetime | timedelta | None:
    """A moment (`2026-01-31T12:00`, without zone one of this machine's clock), or how long ago (`10m`, `2h`, `1d`).

    None: it is neither.
    """
    try:
        if ago := _AGO.fullmatch(text):
            return timedelta(**{_UNITS[ago[2]]: float(ago[1])})
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        return None
