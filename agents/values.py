"""Values of arguments, as models write them, to values that can be stored and carried out; None for anything else."""

import json
import math
import re

from agents.action_space import GRID
from agents.keys import chords
from schemas.text import valid

_NUMBER = re.compile(r"[+-]?+\d++(?:\.\d++)?+")
_LISTED = re.compile(r"""'([^']*+)'|"([^"]*+)"|([^\s,\[\]'"]++)""")
_BRACKETED = re.compile(r"[\[(#]\s*+(\d{1,6}+)\s*+[\])]?+")
_DIRECTIONS = ("up", "down", "left", "right")
_FALSE = ("false", "no", "0")
_MAX_WAIT_S = 60.0
_MAX_LINES = 1_000


def point(value: object) -> tuple[float, float] | None:
    """A point, or the centre of a box, inside the grid."""
    if isinstance(value, str):
        value = _NUMBER.findall(value)
    if not isinstance(value, list):
        return None
    numbers = [found for item in value if (found := number(item)) is not None]
    if len(numbers) != len(value):
        return None
    if len(numbers) == 4:
        numbers = [(numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2]
    if len(numbers) != 2:
        return None
    return _inside(numbers[0]), _inside(numbers[1])


def _inside(value: float) -> float:
    return min(max(value, 0.0), GRID)


def position(value: object) -> int | None:
    """A number that counts from 1, to 999,999 at most; also as `"12"`, `"[12]"`, `[12]`, `12.0`."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str) and (bracketed := _BRACKETED.fullmatch(value.strip())):
        value = bracketed[1]
    found = number(value)
    return int(found) if found is not None and found.is_integer() and 1 <= found < 1_000_000 else None


def number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def text(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return valid(str(value))


def spoken(value: object) -> str | None:
    """A text, or an object or list as its JSON: what an answer may be."""
    if not isinstance(value, dict | list) or not value:
        return text(value)
    try:
        return valid(json.dumps(value, ensure_ascii=False))
    except (ValueError, RecursionError):
        return None


def tab(value: object, *, first: int) -> int | None:
    """Where a tab stands, from 1, by its number where the first has `first`."""
    counted = number(value)
    return position(value if counted is None else counted - first + 1)


def share(value: object, *, default: float) -> float:
    """From 0 to 1; the default for nothing, and for what is no number."""
    found = number(value)
    return default if found is None else min(max(found, 0.0), 1.0)


def keys(value: object, *, together: bool = False) -> tuple[str, ...] | None:
    """Chords, one after the other. `together`: all keys are pressed at once."""
    parts = _listed(value)
    written = [part for each in parts if (part := text(each)) is not None]
    if len(written) != len(parts):
        return None
    return chords(["+".join(written)] if together else written) or None


def _listed(value: object) -> list[object]:
    """A list, also where it is spelled out, as XML calls have it: as JSON, or as Python writes one."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return [single or double or bare for single, double, bare in _LISTED.findall(str(value))] or [value]
    return value if isinstance(value, list) else [value]


def flag(value: object, *, default: bool) -> bool:
    """False for what says no; the default for nothing."""
    if value is None:
        return default
    return str(value).strip().lower() not in _FALSE


def direction(value: object) -> str | None:
    written = value.strip().lower() if isinstance(value, str) else ""
    return written if written in _DIRECTIONS else None


def seconds(value: object, *, default: float) -> float:
    found = number(value)
    return default if found is None else min(max(found, 0.0), _MAX_WAIT_S)


def num_lines(value: object) -> int:
    found = position(value)
    return 100 if found is None else min(found, _MAX_LINES)
