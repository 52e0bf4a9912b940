"""How a careful reader judges by the text of screenshots alone. Pure: it knows no labels and no checks.

It reads facts as the shop's rubrics are written: what has to be seen stands within “ ”, `At the end` means the last
screenshot, `No screenshot shows` all of them, and any of what ` or ` parts will do.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

_QUOTED = re.compile(r"“([^”]+)”")
_OR = re.compile(r",? or (?=[^”]*(?:“|$))")
"""Outside quotation marks."""
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME = re.compile(r"[A-Z][\w&’'-]*(?: (?:& )?[A-Z][\w&’'-]*)+")
_AMOUNT = re.compile(r"(\d+) products?\b")
_AT_THE_END = "At the end"
_NOWHERE = "No screenshot shows"
_WALLS = ("verify that you are human", "denied access", "unusual traffic")
_NOTHING_CLAIMED = ("", "done")
_FEW_WORDS = 4


def blocked(texts: Sequence[str]) -> bool:
    """It ended before a wall."""
    return bool(texts) and any(_shows(texts[-1], wall) for wall in _WALLS)


def needed(facts: str, text: str) -> bool:
    """A screenshot shows something that the facts ask for."""
    return any(_shows(text, phrase) for phrase in _QUOTED.findall(facts))


def proved(fact: str, texts: Sequence[str]) -> bool:
    """One screenshot shows everything that the fact, or one of its alternatives, quotes."""
    if fact.startswith(_NOWHERE):
        return bool(texts) and not any(_shows(text, phrase) for text in texts for phrase in _QUOTED.findall(fact))
    looked_at = texts[-1:] if fact.startswith(_AT_THE_END) else texts
    alternatives = [_QUOTED.findall(each) for each in _OR.split(fact)]
    return any(phrases and all(_shows(text, each) for each in phrases) for phrases in alternatives for text in looked_at)


def supported(answer: str, texts: Sequence[str]) -> bool:
    """Every number and name of an answer stands in the screenshots; so does all of a short one."""
    seen = {value for text in texts for value in _numbers(text)} | set(_sums(texts))
    return set(_numbers(answer)) <= seen and all(any(_shows(text, name) for text in texts) for name in _names(answer))


def agrees(answer: str, reference: str) -> bool:
    """The answer says what the reference says, and no other number."""
    numbers = list(_numbers(reference))
    return list(_numbers(answer)) == numbers if numbers else _shows(answer, reference)


def _shows(text: str, phrase: str) -> bool:
    """As whole words: `Cart 1` is not in `Cart 12`, nor `€1` in `€1.50`."""
    wanted = re.escape(_plain(phrase))
    return re.search(rf"(?<!\w){wanted}(?!\w|[.,]\d)", _plain(text)) is not None


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _numbers(text: str) -> Iterator[str]:
    """In one spelling each: `1,200.50` and `1200.5` are one number, `16:00` is a time."""
    for number in _NUMBER.findall(text):
        try:
            yield f"{float(number.replace(',', '')):g}"
        except ValueError:
            yield number


def _names(answer: str) -> Iterator[str]:
    plain = answer.strip().strip(".")
    if plain.casefold() in _NOTHING_CLAIMED:
        return
    if len(plain.split()) <= _FEW_WORDS and not _NUMBER.search(plain):
        yield plain.removeprefix("The ")
        return
    yield from _QUOTED.findall(answer)
    yield from (name.removeprefix("The ") for name in _NAME.findall(answer))


def _sums(texts: Sequence[str]) -> Iterator[str]:
    """Of what two listings count."""
    amounts = [{int(amount) for amount in _AMOUNT.findall(text)} for text in dict.fromkeys(texts)]
    for first, second in combinations(amounts, 2):
        yield from (f"{one + other:g}" for one in first for other in second)
