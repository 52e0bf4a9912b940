"""Names of keys, by value."""

import pytest

from agents.keys import chords


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Enter", ("Enter",)),
        ("return", ("Enter",)),
        ("a", ("a",)),
        ("A", ("A",)),
        (" ", ("Space",)),
        ("page_down", ("PageDown",)),
        ("Page Down", ("PageDown",)),
        ("ArrowUp", ("ArrowUp",)),
        ("up", ("ArrowUp",)),
        ("f5", ("F5",)),
        ("ctrl+a", ("Control+a",)),
        ("CTRL + A", ("Control+a",)),
        ("cmd+shift+T", ("Meta+Shift+t",)),
        ("ctrl++", ("Control++",)),
        ("+", ("+",)),
        ("ctrl+", ("Control",)),
        ("ctrl c", ("Control+c",)),
        ("ctrl+a Delete", ("Control+a", "Delete")),
        (["ctrl", "a"], ("Control+a",)),
        (["ctrl", "a", "Delete"], ("Control+a", "Delete")),
        (["ctrl+a", "del"], ("Control+a", "Delete")),
        (["Tab", "Enter"], ("Tab", "Enter")),
        (["page down"], ("PageDown",)),
        (["shift"], ("Shift",)),
        ([], ()),
        ("", ()),
        ("Hello", ()),
        ("ctrl+nothing", ()),
        ("é", ()),
        (["a", "nonsense"], ()),
        (["Tab"] * 20, ("Tab",) * 20),
        (["Tab"] * 21, ()),
    ],
)
def test_chords(written: str | list[str], expected: tuple[str, ...]) -> None:
    assert chords(written) == expected
    assert chords(list(expected)) == expected
