"""Published values brought to those of a task file. Pure; None: nothing is said. Every reader raises `Unfit`."""

import hashlib
import re
from collections.abc import Callable

from schemas.site import site_of
from trainer.feeding.problems import Unfit, shown
from trainer.feeding.task_values import decoded

_UNFIT = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_ID, _CUT, _HASH = 96, 80, 12
_DIFFICULTIES = {"easy": 1, "medium": 4, "hard": 7}
"""The lowest of each of WebGym's classes, so that the steps are those of the class."""
CLASSES = "easy, medium and hard become 1, 4 and 7"
IDS = "what is neither letter, digit, `_` nor `-` becomes `-`"


def name(value: object) -> object:
    """An id that can name a task; a changed one is kept in `metadata` too."""
    if isinstance(value, bool) or not isinstance(value, str):
        return value
    token = _UNFIT.sub("-", value.strip())
    if len(token) <= _LONGEST_ID:
        return token
    return f"{token[:_CUT]}-{hashlib.sha256(value.encode()).hexdigest()[:_HASH]}"


def text(value: object) -> object:
    """None where it is blank."""
    return None if isinstance(value, str) and not value.strip() else value


def difficulty(value: object) -> object:
    """A number as it is; a class in words as its lowest number."""
    if not isinstance(value, str):
        return value
    if (found := _DIFFICULTIES.get(value.strip().lower())) is not None:
        return found
    raise Unfit(f"{shown(value)} is none of {', '.join(_DIFFICULTIES)}, and no number")


def site(value: object) -> object:
    return (site_of(value) or None) if isinstance(value, str) else None


def json_object(value: object, what: str) -> dict[str, object] | None:
    """An object, also as JSON in a text."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    found = decoded(value) if isinstance(value, str) else value
    if not isinstance(found, dict):
        raise Unfit(f"{shown(value)} is no {what}, a JSON object")
    return found


def fact_of(group: str) -> Callable[[object], object]:
    """Reads the one fact of a group; what says that there is none gives none."""

    def read(value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, str):
            raise Unfit(f"{shown(value)} is not a text")
        bare = value.strip()
        return [{"description": group, "facts": [bare]}] if bare and bare.lower() != "none" else None

    return read
