"""Verdicts that stand in the text of pages and policies: an answer that repeats one was copied, not judged.

Time is linear in the text, whatever a page plants in it.
"""

import json
import re
from collections.abc import Iterable
from itertools import permutations

from judges.rubric.asking import MalformedVerdict
from judges.rubric.untrusted import cleaned
from schemas.text import encodable

_CODE = re.compile(r"\\u([0-9a-fA-F]{4})")
_LAYOUT = re.compile(r"\\[nrtbf]|[\s\\\"'`]+")
"""What the spelling of one and the same object in JSON, or of JSON in a string, may differ in."""


class Copies:
    """Everything that may hold a verdict in the untrusted text of one episode."""

    def __init__(self, untrusted: Iterable[str]) -> None:
        self._plain = frozenset(map(_bare, set(untrusted)))

    def refuse(self, verdict: str, field: str = "verdict") -> None:
        """Raises `MalformedVerdict` when a verdict, as the JSON object it is, stands in the untrusted text.

        `field` is one that the verdict has: a text without its name holds none.
        """
        planted = [text for text in self._plain if field in text]
        if not planted:
            return
        fields = [f"{_bare(name)}:{_spelled(value)}" for name, value in json.loads(verdict).items()]
        spelled = ["{" + ",".join(order) + "}" for order in permutations(fields)]
        if any(copy in text for copy in spelled for text in planted):
            raise MalformedVerdict("the verdict is a copy of one that stands in what it was to judge")


def _spelled(value: object) -> str:
    return _bare(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _bare(text: str) -> str:
    halves = _CODE.sub(lambda code: chr(int(code[1], 16)), text)
    return _LAYOUT.sub("", cleaned(encodable(halves))).casefold()
