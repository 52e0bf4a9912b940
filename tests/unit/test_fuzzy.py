"""Texts that are alike, and those that only look it."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.programmatic.fuzzy import alike
from schemas.errors import ConfigurationError

ALIKE = [
    ("Oak board", "oak board"),
    ("board, of oak", "Oak: of board"),
    ("grey oak board", "Board, gray oak"),
    ("grey linen cover", "gray linen cover"),
    ("colour of the curtain", "color of the curtain"),
    ("1,234 visitors a day", "visitors a day: 1234"),
    ("four chairs and a table", "4 chairs and a table"),
    ("it isn't available on Monday", "it is not available on Monday"),
    ("you cannot return sale items", "you can't return sale items"),
    ("42", "42.0"),
    ("the museum is open from Tuesday to Sunday", "museum is open from Tuesday to Sunday"),
    ("$5 a month", "5 a month"),
    ("café crème", "cafe\u0301 cre\u0300me"),
    ("СТОЛ дубовый", "дубовый стол"),
]
DIFFERENT = [
    ("oak", "pine"),
    ("oak board", ""),
    ("", "oak board"),
    ("!", "!"),
    ("%", "oak"),
    ("delivery takes 14 working days", "delivery takes 15 working days"),
    ("3 or 4 rooms", "3 rooms"),
    ("two of 2", "2"),
    ("delivery of article B12 to the door", "delivery of article B13 to the door"),
    ("delivery takes nine working days in winter", "delivery takes five working days in winter"),
    ("the article is available in our shop in Lisbon", "the article is not available in our shop in Lisbon"),
    ("the article isn't available in our shop in Lisbon", "the article is available in our shop in Lisbon"),
    ("the article is unavailable in our shop in Lisbon", "the article is available in our shop in Lisbon"),
    ("available", "unavailable"),
    ("open from Monday to Friday, then closed for the summer", "open from Sunday to Friday, then closed for the summer"),
    ("it costs $5 a month when paid for a year", "it costs €5 a month when paid for a year"),
    ("oak, pine, birch and steel", "oak"),
    ("-7 degrees", "7 degrees"),
]


@pytest.mark.parametrize(("value", "expected"), ALIKE)
def test_alike(value: str, expected: str) -> None:
    assert alike(value, expected)
    assert alike(expected, value)


@pytest.mark.parametrize(("value", "expected"), DIFFERENT)
def test_different(value: str, expected: str) -> None:
    assert not alike(value, expected)
    assert not alike(expected, value)


def test_without_rapidfuzz_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    assert alike("oak board", "board oak")
    with pytest.raises(ConfigurationError, match=r"pip install 'millrace\[judge\]'"):
        alike("oak boards", "board oak")


@given(words=st.lists(st.text(min_size=1), max_size=8), more=st.integers(2, 1000), data=st.data())
def test_order_never_counts_and_one_more_number_always_does(words: list[str], more: int, data: st.DataObject) -> None:
    text, shuffled = " ".join(words), " ".join(data.draw(st.permutations(words)))
    assert alike(text, text) == any(letter.isalnum() or letter == "_" for letter in text) or not text.isascii()
    assert not alike(f"{text} {more}", shuffled)
