"""Text of others (pages, models, task files, judges, endpoints), made fit to be kept and to be looked at. Pure.

`valid` is for what enters a record: it is encodable as UTF-8, holds no control character but line feeds and tabs, and is no
longer than its place allows. `visible` is for a terminal or a line of a log: nothing in it is obeyed, hidden, or turns the
words beside it round. Both look at no more of a text than they may keep, a few times over, whatever its length.
"""

import re
import unicodedata
from collections.abc import Callable

MOST = 200_000
"""Characters of the longest text that a record holds."""
_LINE = 500
_VISIBLE_LINES = 400
_REPLACED = "\ufffd"
_LONGEST_CLUSTER = 32
"""Characters that a reader takes for one, as far as a cut goes back to keep them together."""
_MOST_MARKS = 4
"""Marks on one letter; more would climb over the lines around it."""
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_HIDDEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Unicode's Default_Ignorable_Code_Point (direction, zero width, variation, tags) and interlinear annotations."""
_IS_HIDDEN = re.compile(f"[{_HIDDEN}]")
_OBEYED = re.compile(f"[\x7f-\x9f\u2028\u2029{_HIDDEN}]")


class Characters(dict[int, str]):
    """What becomes of each character, worked out when it is first met; for `str.translate`."""

    def __init__(self, becomes: Callable[[str], str]) -> None:
        super().__init__()
        self._becomes = becomes

    def __missing__(self, code: int) -> str:
        self[code] = self._becomes(chr(code))
        return self[code]


def valid(text: str, most: int = MOST) -> str:
    """The text as a record may hold it, at most `most` characters; equal to the text where that is so already."""
    text = cut(text, most)
    if is_valid(text):
        return text
    return _CONTROL.sub(_REPLACED, encodable(with_line_feeds(text)))


def is_valid(text: str) -> bool:
    """Whether `valid` leaves the text as it is, but for its length."""
    return _UNFIT.search(text) is None


def encodable(text: str) -> str:
    """Halves of characters that stand together become the character, lone ones the replacement character."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def with_line_feeds(text: str) -> str:
    """Every kind of line end as `\\n`."""
    return _LINE_ENDS.sub("\n", text)


def cut(text: str, most: int) -> str:
    """The first `most` characters; fewer where the last would be parted from what belongs to it."""
    if len(text) <= most:
        return text
    for end in range(most, max(0, most - _LONGEST_CLUSTER), -1):
        if not _belongs_together(text[end - 1], text[end]):
            return text[:end]
    return text[:most]


def visible(text: str, most: int = _LINE) -> str:
    """One line for a terminal: what it would obey is replaced, what cannot be seen is left out."""
    if len(text) <= most and text.isascii() and text.isprintable():
        return text
    line = harmless(text[: 4 * most]).replace("\n", " ")
    return line if len(line) <= most and len(text) <= 4 * most else f"{cut(line, most - 1)}…"


def visible_lines(text: str) -> str:
    """The same of a text of several lines, such as a traceback."""
    lines = with_line_feeds(text[: _LINE * _VISIBLE_LINES]).split("\n", _VISIBLE_LINES)
    return "\n".join(visible(line, 4 * _LINE) for line in lines[:_VISIBLE_LINES])


def harmless(text: str) -> str:
    """Of equal lines, however many: without what a terminal would obey, and without what cannot be seen."""
    return text if text.isascii() and text.isprintable() else _unstacked(text.translate(_VISIBLE))


def spelled(json: str) -> str:
    """JSON of equal value in which a terminal finds nothing to obey or to hide: such characters are spelt as `\\uXXXX`."""
    return _OBEYED.sub(_spelling, json)


def _spelling(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _belongs_together(before: str, after: str) -> bool:
    """Whether a cut between the two would part what is read as one."""
    if "\udc00" <= after <= "\udfff":
        return "\ud800" <= before <= "\udbff"
    joiner = "\u200d"
    is_skin = "\U0001f3fb" <= after <= "\U0001f3ff"
    return joiner in (before, after) or is_skin or unicodedata.category(after).startswith("M")


def _visible(character: str) -> str:
    if character.isspace():
        return "\n" if character == "\n" else " "
    if _IS_HIDDEN.match(character):
        return ""
    return character if character.isprintable() else _REPLACED


def _unstacked(text: str) -> str:
    if text.isascii():
        return text
    kept, num_marks = list[str](), 0
    for character in text:
        num_marks = num_marks + 1 if unicodedata.category(character).startswith("M") else 0
        if num_marks <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)


_VISIBLE = Characters(_visible)
