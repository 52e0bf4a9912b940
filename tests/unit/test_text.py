"""What becomes of text that is not fit to be kept, or to be looked at."""

import json
import string

import pytest

from schemas.errors import PageFailed
from schemas.text import cut, harmless, spelled, valid, visible, visible_lines

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
WAVE = "\U0001f44b\U0001f3fd"


@pytest.mark.parametrize("text", ["", "plain", "two\nlines\tand a tab", "Grüße, 世界 \U0001f600", "שלום", FAMILY, "e\u0301"])
def test_fit_text_stays_as_it_is(text: str) -> None:
    assert valid(text) == text


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("half \ud83d", "half \ufffd"),
        ("\ude00 half", "\ufffd half"),
        ("whole \ud83d\ude00", "whole \U0001f600"),
        ("a\x00b\x1b[2Jc\x7f\x9bd", "a\ufffdb\ufffd[2Jc\ufffd\ufffdd"),
        ("a\r\nb\rc\x0bd\x0ce\x85f\u2028g\u2029h", "a\nb\nc\nd\ne\nf\ng\nh"),
    ],
)
def test_unfit_text_becomes_valid(text: str, becomes: str) -> None:
    assert valid(text) == becomes
    assert valid(becomes) == becomes


@pytest.mark.parametrize(
    ("text", "most", "becomes"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "abc"),
        (f"a{FAMILY}", 3, "a"),
        (f"a{WAVE}b", 2, "a"),
        ("ae\u0301", 2, "a"),
        ("a\ud83d\ude00", 2, "a"),
        ("a" + "\u0301" * 100, 50, "a" + "\u0301" * 49),
    ],
)
def test_a_cut_parts_nothing_that_is_read_as_one(text: str, most: int, becomes: str) -> None:
    assert cut(text, most) == becomes


def test_a_terminal_finds_nothing_to_obey_or_to_hide() -> None:
    assert visible("a\x1b[2Jb\x9b1m\x00\nc\td\u00a0e") == "a\ufffd[2Jb\ufffd1m\ufffd c d e"
    assert visible("user\u202etxt.exe\u2066x\u2069") == "usertxt.exex"
    assert visible("in\u200bvis\u00adible\ufeff\U000e0041\u3164") == "invisible"
    assert visible("half \ud83d, whole \U0001f600") == "half \ufffd, whole \U0001f600"
    assert visible("Z" + "\u0301" * 40) == "Z" + "\u0301" * 4
    assert visible("x" * 600) == "x" * 499 + "…"
    assert visible("a\x1b[2Jb" + "x" * 100, 60) == "a\ufffd[2Jb" + "x" * 53 + "…"
    assert visible("\u200b" * 10_000_000 + "x") == "…", "no more is looked at than can be shown"
    assert visible_lines("one\x1b\r\ntwo\u202e") == "one\ufffd\ntwo"
    assert harmless(string.printable) == string.printable.translate({9: " ", 11: " ", 12: " ", 13: " "})


def test_spelt_json_has_the_same_value() -> None:
    text = "a\x7f\x9b\u202e\u2028\U000e0041\U0001f600é"
    written = spelled(json.dumps({text: text}, ensure_ascii=False))
    assert json.loads(written) == {text: text}
    assert not set("\x7f\x9b\u202e\u2028\U000e0041") & set(written)
    assert "\U0001f600é" in written


def test_an_error_made_of_others_words_is_fit_for_a_record() -> None:
    assert (
        str(PageFailed("page \ud83d\x1b[2J says " + "x" * 1_000_000)) == ("page \ufffd\ufffd[2J says " + "x" * 8_000)[:8_000]
    )
