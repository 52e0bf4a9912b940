"""Numbers in texts, by value."""

import pytest

from judges.programmatic.numbers import numbers_of, without_numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,234", (1234,)),
        ("1,2345", (1.2345,)),
        ("12,345.6", (12345.6,)),
        ("v2", ()),
        ("4.5/5", (4.5, 5)),
        ("no", ()),
        ("-2 C", (-2,)),
        ("\N{MINUS SIGN}2 C", (-2,)),
        ("x-2", (2,)),
        ("3kg for 12,90 €", (3, 12.9)),
    ],
)
def test_the_numbers_of_a_text(text: str, numbers: tuple[float, ...]) -> None:
    assert numbers_of(text) == numbers


def test_what_is_no_number_is_the_rest() -> None:
    assert without_numbers("3kg of B12, for 12,90 €").split() == ["kg", "of", "B12,", "for", "€"]
