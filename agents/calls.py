"""Finds tool calls in what a model said.

Invariant: reading never fails, and nothing is added to what was said: a field that cannot be made out is missing. What an
argument may be called is `agents.aliases`' affair.
"""

import json
import re
from collections.abc import Callable, Mapping

Call = Mapping[str, object]
"""Arguments of a tool call by name; `action` among them, unless the call is broken."""


class BrokenCall(dict[str, object]):
    """What can be made out of a call that does not end as it should: an argument that it lacks may have been meant."""


# A model says what it likes, so every repetition is possessive, or ends at the next thing that it looks for: no character is
# looked at again and again.
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_FUNCTION_END = "</function>"
_FUNCTION = re.compile(r"<function=([^<>\s]{1,100})>")
_PARAMETER = re.compile(
    rf"<parameter=([^<>\s]{{1,100}})>\n?(.*?)\n?(?:</parameter>|(?=<parameter=)|(?={_FUNCTION_END})|\Z)", re.DOTALL
)
_LOOSE_FIELD = re.compile(
    r"""(?<!\w)([A-Za-z_]\w{0,30}+)["']?+\s*+[:=]\s*+(?:"""
    r"""[\[(]?+\s*+([+-]?+\d++(?:\.\d++)?+(?:\s*+,\s*+[+-]?+\d++(?:\.\d++)?+)*+)(?=[\s,\])}]|\Z)"""  # numbers
    r"""|[\[(]([^\])]*+)"""  # a list
    r"""|"((?:[^"\\]|\\.|"(?!\s*+(?:[,}\])]|"\w{1,30}+"\s*+:|\Z)))*+)"?+"""  # text, whatever quotes stand in it
    r"""|'([^']*+)'?+"""
    r"""|([^\s,}\]{\["'][^\s,}\]]*+))""",
    re.DOTALL,
)
"""A word, and behind a colon or an equals sign what it is."""
_LOOSE_ITEM = re.compile(r"""[^\s,"'{}]++""")
_LOOSE_NAME = re.compile(r"[A-Za-z_][\w -]*+")


def calls(said: str) -> list[Call]:
    """Possible calls in order, each as it is: well-formed, or what loose reading finds, which may be nothing."""
    bodies = [str(body) for body in _CALL.findall(said)] or [said]
    return [_loose(body) if (call := _strict(body)) is None else call for body in bodies]


def _strict(body: str) -> Call | None:
    """The arguments of the first JSON object in `body`, or of the function that it calls in XML, if it is a call."""
    start = body.find("{")
    named = _FUNCTION.search(body, 0, start if start >= 0 else len(body))
    if named:
        said = {str(name): str(value) for name, value in _PARAMETER.findall(body, named.end())}
        found = {"action": str(named[1]), **said}
        return found if _FUNCTION_END in body else BrokenCall(found)
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


def _loose(body: str) -> BrokenCall:
    """Fields of a call whose JSON is broken: unquoted, cut off, wrongly bracketed. The action may stand under `name`."""
    found = BrokenCall()
    for name, numbers, listed, double, single, bare in _LOOSE_FIELD.findall(body):
        if "," in numbers or listed:
            found.setdefault(name, _LOOSE_ITEM.findall(numbers or listed))
        else:
            found.setdefault(name, numbers or (_unescaped(double) if double else single or bare))
    if named := _LOOSE_NAME.match(str(found.pop("action", None) or found.get("name", ""))):
        found["action"] = named[0]
    return found


def _unescaped(text: str) -> str:
    value = _json(lambda: json.loads(f'"{text}"', strict=False))
    return value if isinstance(value, str) else text
