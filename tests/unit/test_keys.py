"""Lists of keys, by value."""

import pytest

from agents.keys import chords


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Enter", ("Enter",)),
        ("a", ("a",)),
        (" ", ("Space",)),
        ("page_down", ("page_down",)),
        ("Page Down", ("PageDown",)),
        ("Tab Enter", ("Tab", "Enter")),
        ("ctrl+a", ("ctrl+a",)),
        ("CTRL + A", ("CTRL+A",)),
        ("cmd+shift+T", ("cmd+shift+T",)),
        ("ctrl+page down", ("ctrl+pagedown",)),
        ("ctrl++", ("ctrl++",)),
        ("+", ("+",)),
        ("ctrl+", ("ctrl",)),
        ("ctrl c", ("ctrl+c",)),
        ("ctrl+a Delete", ("ctrl+a", "Delete")),
        (["ctrl", "a"], ("ctrl+a",)),
        (["ctrl", "shift", "t"], ("ctrl+shift+t",)),
        (["ctrl", "a", "Delete"], ("ctrl+a", "Delete")),
        (["Control+a", "Delete"], ("Control+a", "Delete")),
        (["Tab", "Enter"], ("Tab", "Enter")),
        (["page down", " "], ("pagedown", "Space")),
        (["Shift"], ("Shift",)),
        (["a", "Shift"], ("a", "Shift")),
        ([], ()),
        ("", ()),
        ("\n", ()),
    ],
)
def test_chords(written: str | list[str], expected: tuple[str, ...]) -> None:
    assert chords(written) == expected
    assert chords(list(expected)) == expected
