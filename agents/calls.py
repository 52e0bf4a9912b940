"""Finds tool calls in what a model said.

Invariant: reading never fails, and nothing is added to what was said: a field that cannot be made out is missing.
"""

import json
import re
from collections.abc import Callable, Mapping

Call = Mapping[str, object]
"""Arguments of a tool call by name; `action` among them, unless the call is broken."""


def _name(*names: str) -> str:
    """One of these as a word of its own. It begins with plain letters, so that the search skips everything else."""
    return "(" + "|".join(rf"{name}(?<!\w{name})" for name in names) + ")"


# A model says what it likes, so every repetition is possessive, or ends at the next thing that it looks for: no character is
# looked at again and again.
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_NUMBER = r"[+-]?+\d++(?:\.\d++)?+"
_IS = r"""["']?+\s*+[:=]\s*+"""
_LOOSE_NAME = re.compile(_name("action") + _IS + r"""["']?+([A-Za-z_]++)""")
_LOOSE_POINT = re.compile(
    _name("start_coordinate", "end_coordinate", "coordinate") + "s?+" + _IS
    + rf"[\[(]?+\s*+({_NUMBER}(?:\s*+,\s*+{_NUMBER})*+)"
)  # fmt: skip
_LOOSE_KEYS = re.compile(_name("keys") + _IS + r"[\[(]([^\])]*+)")
_LOOSE_KEY = re.compile(r"""[^\s,"'{}]++""")
_LOOSE_TEXT = re.compile(
    _name("text", "url", "direction", "time", "end_element_id", "element_id", "pixels", "keys", "tab", "num_lines", "enter")
    + _IS + r"""(?:"((?:[^"\\]|\\.)*+)"?+|'([^']*+)'?+|([^\s,}\]]++))"""
)  # fmt: skip


def calls(said: str) -> list[Call]:
    """Possible calls in order: the well-formed ones, or, where there is none, what loose reading finds."""
    bodies = [str(body) for body in _CALL.findall(said)] or [said]
    strict = [call for body in bodies if (call := _strict(body)) is not None]
    return strict or [_loose(body) for body in bodies]


def _strict(body: str) -> Call | None:
    """The arguments of the first JSON object in `body`, if it is a call."""
    start = body.find("{")
    if start < 0:
        return None
    value = _json(lambda: json.JSONDecoder(strict=False).raw_decode(body, start)[0])
    if not isinstance(value, dict):
        return None
    inner = value.get("arguments", value)
    if isinstance(inner, str):
        quoted = inner
        inner = _json(lambda: json.loads(quoted, strict=False))
    if not isinstance(inner, dict):
        return None
    if "action" not in inner and inner is not value and isinstance(value.get("name"), str):
        return {**inner, "action": value["name"]}  # a tool named after the action
    return inner if "action" in inner else None


def _json(read: Callable[[], object]) -> object:
    try:
        return read()
    except (ValueError, RecursionError):
        return None


def _loose(body: str) -> Call:
    """Fields of a call whose JSON is broken: unquoted, cut off, wrongly bracketed."""
    found: dict[str, object] = {}
    if name := _LOOSE_NAME.search(body):
        found["action"] = name[2]
    for field, numbers in _LOOSE_POINT.findall(body):
        found.setdefault(field, numbers)
    for field, keys in _LOOSE_KEYS.findall(body):
        found.setdefault(field, _LOOSE_KEY.findall(keys))
    for field, double, single, bare in _LOOSE_TEXT.findall(body):
        found.setdefault(field, _unescaped(double) if double else single or bare)
    return found


def _unescaped(text: str) -> str:
    value = _json(lambda: json.loads(f'"{text}"', strict=False))
    return value if isinstance(value, str) else text
