"""Verdicts that stand in the text of pages and policies: an answer that repeats one was copied, not judged.

Time is linear in the text, whatever a page plants in it.
"""

import json
import re
from collections.abc import Iterable

from judges.rubric.asking import MalformedVerdict
from judges.rubric.untrusted import cleaned
from schemas.text import encodable

_CODE = re.compile(r"\\u([0-9a-fA-F]{4})")
_LAYOUT = re.compile(r"\\[nrtbf]|[\s\\\"'`]+")
"""What the spelling of one and the same object in JSON, or of JSON in a string, may differ in."""


class Copies:
    """Everything that may hold a verdict in the untrusted text of one episode."""

    def __init__(self, untrusted: Iterable[str]) -> None:
        plain = (_bare(text) for text in set(untrusted) if "verdict" in text.lower() or "\\u" in text)
        self._planted = tuple(text for text in plain if "verdict" in text)

    def refuse(self, verdict: str) -> None:
        """Raises `MalformedVerdict` when a verdict, as the JSON object it is, stands in the untrusted text."""
        if not self._planted:
            return
        fields = [f"{_bare(name)}:{_bare(value)}" for name, value in json.loads(verdict).items()]
        spelled = ("{" + ",".join(order) + "}" for order in (fields, fields[::-1]))
        if any(copy in text for copy in spelled for text in self._planted):
            raise MalformedVerdict("the verdict is a copy of one that stands in what it was to judge")


def _bare(text: str) -> str:
    halves = _CODE.sub(lambda code: chr(int(code[1], 16)), text)
    return _LAYOUT.sub("", cleaned(encodable(halves))).casefold()
