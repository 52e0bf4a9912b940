"""Keys as models list them to chords, one after the other. What a key is called, and whether there is such a key, is the
browser's affair: it can say what to write instead."""

import re
from collections.abc import Sequence

_MODIFIERS = frozenset(
    {"control", "ctrl", "lctrl", "rctrl", "alt", "option", "opt", "altgr", "altgraph", "shift", "meta", "cmd", "command"}
    | {"super", "win", "windows", "controlormeta"}
)
_SPACED_PLUS = re.compile(r"(?<=\w)\s*+\+\s*+(?=\S)")
_TWO_WORDS = re.compile(r"\b(page|arrow|caps|num|scroll|print|context)\s++(?=\w)", re.IGNORECASE)


def chords(written: str | Sequence[str]) -> tuple[str, ...]:
    """Keys that are pressed together, joined by `+`, in order; none has white space in it.

    Modifiers hold until the next other key: `["ctrl", "a", "Delete"]` and `"ctrl + a Delete"` are `ctrl+a`, then `Delete`.
    """
    parts = [written] if isinstance(written, str) else written
    found: list[str] = []
    held: list[str] = []
    for key in (key for part in parts for key in _keys(part)):
        held.append(key)
        if key.lower() not in _MODIFIERS:
            found.append("+".join(held))
            held = []
    if held:
        found.append("+".join(held))
    return tuple(found)


def _keys(part: str) -> list[str]:
    if part == " ":
        return ["Space"]
    keys = _TWO_WORDS.sub(r"\1", _SPACED_PLUS.sub("+", part)).split()
    return [key if key.endswith("++") else key.rstrip("+") or key for key in keys]
