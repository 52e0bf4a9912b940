"""Holds what somebody wrote for another program: values by their full keys, with readings for conversions. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass


class Unfit(ValueError):
    """A value is not of the kind that its key takes; its text says so in a clause."""


@dataclass(frozen=True, slots=True)
class Open:
    """A value that is known only where the script runs, as `$HOME/data`."""

    text: str


class Depends(Exception):
    """What a conversion has to know is `Open`."""

    def __init__(self, key: str, value: Open) -> None:
        super().__init__(f"it depends on {key}, which is {value.text} there")


@dataclass(frozen=True, slots=True)
class Written:
    """What a file says, and what its program takes where it says nothing."""

    values: Mapping[str, object]
    defaults: Mapping[str, object]

    def get(self, *keys: str) -> object:
        """The first that is written and not null, else the first default; None where there is neither.

        Raises:
            Depends: that one is open.
        """
        for source in (self.values, self.defaults):
            for key in keys:
                if isinstance(value := source.get(key), Open):
                    raise Depends(key, value)
                if value is not None:
                    return value
        return None

    def says(self, key: str) -> bool:
        return self.values.get(key) is not None

    def number(self, *keys: str) -> float | None:
        """None where there is none; also where something else is written. Raises `Depends`."""
        try:
            return number(self.get(*keys))
        except Unfit:
            return None

    def true(self, key: str) -> bool:
        return truth(self.get(key) or False)


def number(value: object) -> float:
    """Raises `Unfit`. Text is read too, since YAML takes 1e-6 for text."""
    try:
        found = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise Unfit("is no number")
    return found


def whole(value: object) -> int:
    """Raises `Unfit`."""
    found = number(value)
    if found != int(found):
        raise Unfit("is no whole number")
    return int(found)


def truth(value: object) -> bool:
    """Raises `Unfit`."""
    said = value.lower() if isinstance(value, str) else value
    if said in (True, 1, "true", "yes", "on", "1"):
        return True
    if said in (False, 0, "false", "no", "off", "0", ""):
        return False
    raise Unfit("is neither true nor false")


def text(value: object) -> str:
    """Raises `Unfit` for lists and groups."""
    if isinstance(value, str | int | float):
        return str(value)
    raise Unfit("is no text")


def listed(value: object) -> list[object]:
    """A list as it is, anything else as a list of one."""
    return list(value) if isinstance(value, list | tuple) else [value]
