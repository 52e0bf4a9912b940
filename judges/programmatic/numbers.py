"""Numbers as people write them in texts."""

import re
import unicodedata

_NUMBER = re.compile(r"(?<!\w)(?<!\d[.,])-?(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.,]\d+)?)")
"""Commas in front of three digits part thousands; any other comma is a decimal one. Digits inside a word are no number."""
_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def numbers_of(text: str) -> tuple[float, ...]:
    """The numbers that stand in a text by themselves: 4.5 and 5 in `rated 4.5 of 5`, none in `B12`."""
    return tuple(_value(found.group()) for found in _NUMBER.finditer(_plain(text)))


def without_numbers(text: str) -> str:
    """The rest of a text, normalised (NFKC), with a blank where each of `numbers_of` was."""
    return _NUMBER.sub(" ", _plain(text))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("\N{MINUS SIGN}", "-")


def _value(digits: str) -> float:
    return float(digits.replace(",", "" if _THOUSANDS.fullmatch(digits) else "."))
