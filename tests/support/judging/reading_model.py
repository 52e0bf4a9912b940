"""A model that reads: it answers the rubric's questions from what a request holds, and from nothing else.

A screenshot is known by its bytes alone, to which a run's `ScreenshotTexts` gives the text that was in view; `texts.reading`
judges
by it. A request that it cannot understand, or a screenshot that nobody took, raises: the endpoint then answers with 500.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.support.judging.endpoint_replies import Said
from tests.support.judging.endpoint_requests import Asked
from tests.support.texts import reading
from tests.support.texts.page_text import digest_of

_ANSWER = "The agent's final answer"
_BLOCK = re.compile(r"<<<UNTRUSTED \w+>>>\n((?:\|[^\n]*\n)+)<<<END \w+>>>")
_FACT = re.compile(r"^Fact: (.+)$", re.MULTILINE)
_REFERENCE = re.compile(r"^Reference answer: (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ReadingModel:
    """The script of a scripted endpoint."""

    texts: Mapping[str, str]
    """By the digest of the screenshot."""

    def __call__(self, asked: Asked) -> Said:
        *before, question = [text for message in asked.messages for text in message.content if isinstance(text, str)]
        seen = [self.texts[digest_of(screenshot)] for screenshot in asked.screenshots]
        if "NOT_BLOCKED" in question:
            return _said(
                reading.blocked(seen), "BLOCKED", "NOT_BLOCKED", f"The last of {len(seen)} screenshots was looked at."
            )
        if "NOT_NEEDED" in question:
            (text,) = seen
            facts = "\n".join(_BLOCK.sub("", each) for each in before)
            return _said(reading.needed(facts, text), "NEEDED", "NOT_NEEDED", "What the facts quote was looked for.")
        answer = answer_in(before)
        if fact := _FACT.search(question):
            return _criterion(reading.proved(fact[1], seen), f"{len(seen)} screenshots were searched for this fact.")
        supported = reading.supported(answer, seen)
        if reference := _REFERENCE.search(question):
            agrees = reading.agrees(answer, reference[1])
            return _criterion(supported and agrees, f"The answer {'agrees' if agrees else 'does not agree'}.")
        return _criterion(supported, f"Numbers and names were looked for in {len(seen)} screenshots.")


def answer_in(texts: Sequence[str]) -> str:
    """The agent's answer, as one of the texts of a question quotes it."""
    (told,) = (text for text in texts if text.startswith(_ANSWER))
    block = _BLOCK.search(told)
    assert block is not None, f"no quotation in {told!r}"
    return "\n".join(line.removeprefix("| ") for line in block[1].splitlines())


def _criterion(passed: bool, reasoning: str) -> Said:
    return _said(passed, "SUCCESS", "FAILURE", reasoning)


def _said(passed: bool, yes: str, no: str, reasoning: str) -> Said:
    return Said(json.dumps({"reasoning": reasoning, "verdict": yes if passed else no}))
