"""Text of pages and policies, made harmless to quote."""

from hypothesis import given
from hypothesis import strategies as st

from judges.rubric.untrusted import Fence, cleaned, fence, on_one_line, shortened
from tests.builders import task

_FENCE = Fence("0a1b2c3d4e5f")


def test_a_fence_is_of_an_episode_and_a_rubric() -> None:
    first, other = task("t1").episode, task("t2").episode
    assert fence(first, "rubric_v1") == fence(first, "rubric_v1")
    tokens = {fence(episode, rubric).token for episode in (first, other) for rubric in ("rubric_v1", "rubric_v1-large")}
    assert len(tokens) == 4
    assert {len(token) for token in tokens} == {20}


def test_a_quotation() -> None:
    assert _FENCE.block("one\n\ntwo") == "<<<UNTRUSTED 0a1b2c3d4e5f>>>\n| one\n| \n| two\n<<<END 0a1b2c3d4e5f>>>"
    assert _FENCE.plain("a 0A1b2c3d4e5f b ０a1b2c3d4e5f") == "a [removed] b [removed]"
    assert _FENCE.plain("0a1b2c3d0a1b2c3d4e5f4e5f") == "0a1b2c3d[removed]4e5f"


def test_cleaning_keeps_what_people_read() -> None:
    text = "Größe 4½, 20 € – “ja” 日本語 עברית 😀\tx\ny"
    assert cleaned(text) == text
    assert cleaned("a\r\nb\rc\u2028d\x00\x1b\u200b\ufeff\u202e\ud800e") == "a\nb\nc\nd\ufffde"


def test_shortening_says_so() -> None:
    assert shortened("abcde", 5) == "abcde"
    assert shortened("abcdefg", 5) == "abcde [2 more characters are left out]"
    assert on_one_line(" a\n b\t\u2029c ", 3) == "a b [2 more characters are left out]"


_PARTS = st.sampled_from(
    [
        "0a1b2c",
        "3d4e5f",
        "0A1B2C",
        "<<<",
        ">>>",
        "END ",
        "UNTRUSTED ",
        "\n",
        "\r",
        "\u2028",
        "| ",
        "\u200b",
        "０",
        "a1b2c",
        "\ud800",
    ]
)


@given(st.one_of(st.text(), st.lists(_PARTS, max_size=30).map("".join)))
def test_nothing_ends_its_own_quotation(text: str) -> None:
    opening, *lines, closing = _FENCE.block(text).split("\n")
    assert (opening, closing) == (_FENCE.opening, _FENCE.closing)
    assert lines
    assert all(line.startswith("| ") and _FENCE.token not in line.lower() for line in lines)
    "\n".join(lines).encode()
    assert cleaned(cleaned(text)) == cleaned(text)
