"""A tokenizer of whole words: what is one token, and that nothing is lost."""

from hypothesis import given
from hypothesis import strategies as st

from ops.quickstart.word_tokenizer import word_tokenizer

_SPECIAL = ("<|endoftext|>", "<|im_end|>")
_TOKENIZER = word_tokenizer(
    ["Click the Okay button", "the Okay button", "the rare one"],
    words=["link"],
    phrases=["[3] ", "[31] ", ' "', '"\n', "Action: Click"],
    special_tokens=_SPECIAL,
)


def _tokens(text: str) -> list[str]:
    return list(_TOKENIZER.encode(text, add_special_tokens=False).tokens)


def test_a_word_of_two_texts_is_one_token_with_and_without_a_space() -> None:
    assert _tokens("Okay Okay link") == ["Okay", "ĠOkay", "Ġlink"]


def test_a_rarer_word_is_read_two_signs_at_a_time_wherever_it_stands() -> None:
    assert _tokens("rare") == ["ra", "re"]
    assert _tokens(" rarer") == ["Ġ", "ra", "re", "r"]
    assert _tokens(' "a7b9Z"') == [' "', "a7", "b9", "Z", '"']


def test_a_word_inside_another_string_is_none() -> None:
    assert _tokens("Okays linked") == ["Ok", "ay", "s", "Ġ", "li", "nk", "ed"]
    assert _tokens("aOkay Okay_link") == ["aO", "ka", "y", "ĠOkay", "_", "link"]


def test_numbers_are_one_token_up_to_129() -> None:
    assert _tokens("7 129 130") == ["7", "Ġ129", "Ġ", "13", "0"]


def test_phrases_are_one_token_and_the_longer_wins() -> None:
    assert _tokens('[31] link "Okay"\n[3] ') == ["[31] ", "link", ' "', "Okay", '"\n', "[3] "]


def test_control_tokens_come_first() -> None:
    assert [_TOKENIZER.token_to_id(token) for token in _SPECIAL] == [0, 1]


@given(st.text())
def test_decoding_gives_what_was_encoded(text: str) -> None:
    encoded = _TOKENIZER.encode(text, add_special_tokens=False).ids
    assert _TOKENIZER.decode(encoded, skip_special_tokens=False) == text
