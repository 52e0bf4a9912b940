"""What names of keys stand for."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser_workers.keys import UnknownKey, chord_of, chords_of, is_paste


@pytest.mark.parametrize(
    ("text", "chord"),
    [
        ("Control+a", "Control+a"),
        ("ctrl+A", "Control+a"),
        ("cmd+c", "ControlOrMeta+c"),
        ("CTRL + Shift + t", "Control+Shift+t"),
        ("shift+A", "Shift+A"),
        ("esc", "Escape"),
        ("arrowup", "ArrowUp"),
        ("Page_Down", "PageDown"),
        ("pagedown", "PageDown"),
        ("Return", "Enter"),
        ("KP_Enter", "Enter"),
        ("KeyB", "b"),
        ("f5", "F5"),
        ("a", "a"),
        ("A", "A"),
        ("space", "Space"),
        (" ", "Space"),
        ("+", "+"),
        ("ctrl++", "Control++"),
        ("ctrl+plus", "Control++"),
        ("ctrl", "Control"),
    ],
)
def test_names(text: str, chord: str) -> None:
    assert chord_of(text) == chord


@pytest.mark.parametrize("text", ["hello", "", "é", "a+b", "ctrl+", "enter+enter", "ctrl+hello"])
def test_what_is_no_key_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(UnknownKey, match=r"write .*"):
        chord_of(text)


def test_several_chords() -> None:
    assert chords_of(("tab", "ctrl+a", "del")) == ("Tab", "Control+a", "Delete")
    with pytest.raises(UnknownKey, match="press needs keys"):
        chords_of(())
    with pytest.raises(UnknownKey, match="at most 50"):
        chords_of(("a",) * 51)


def test_pastes() -> None:
    pastes = ("ctrl+v", "cmd+V", "ctrl+shift+v", "shift+insert", "shift+ctrl+v")
    assert all(is_paste(chord_of(text)) for text in pastes)
    assert not any(is_paste(chord_of(text)) for text in ("v", "ctrl+c", "shift+v", "insert", "alt+v"))


@given(st.text())
def test_any_text_is_a_chord_or_refused(text: str) -> None:
    with suppress(UnknownKey):
        assert chord_of(text)
