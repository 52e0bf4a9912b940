"""Constructed weights find things before anything is learnt."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from transformers import Qwen3VLForConditionalGeneration

from ops.quickstart.marks_material import SHAPE
from ops.quickstart.marks_phrases import WORDS, line_end_tokens, line_number, line_number_tokens, token_forms
from ops.quickstart.reading_weights import Words, write_reading_weights
from ops.quickstart.tiny_model import SPECIAL_TOKENS, TinyShape, build_tiny_model
from ops.quickstart.word_tokenizer import word_tokenizer

_TOKENIZER = word_tokenizer(
    [], words=WORDS, phrases=[*(line_number(number) for number in range(1, 130)), ' "', '"\n'], special_tokens=SPECIAL_TOKENS
)
_WORDS = Words(forms=token_forms(_TOKENIZER), numbers=line_number_tokens(_TOKENIZER), ends=line_end_tokens(_TOKENIZER))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Qwen3VLForConditionalGeneration:
    folder = tmp_path_factory.mktemp("model")
    build_tiny_model(
        folder, _TOKENIZER, seed=1, shape=SHAPE, write_weights=lambda made: write_reading_weights(made, _WORDS, seed=1)
    )
    return Qwen3VLForConditionalGeneration.from_pretrained(folder).eval()


def _ranked(model: Qwen3VLForConditionalGeneration, text: str, among: list[str]) -> list[str]:
    """Likeliest first."""
    tokens = torch.tensor([_TOKENIZER.encode(text, add_special_tokens=False).ids])
    with torch.no_grad():
        logits = model(input_ids=tokens).logits[0, -1]
    return sorted(among, key=lambda token: -float(logits[_TOKENIZER.token_to_id(token)]))


def test_what_followed_a_word_is_likely_to_follow_it_again(model: Qwen3VLForConditionalGeneration) -> None:
    words = ["date", "field", "link", "menu", "option", "picture", "radio", "state"]
    for first, second in pairwise(words):
        others = [f"Ġ{word}" for word in words if word != first]
        assert _ranked(model, f"the date field link menu option picture radio state of {first}", others)[0] == f"Ġ{second}"


def test_what_is_spelled_in_pieces_is_spelled_again_in_the_same_case(model: Qwen3VLForConditionalGeneration) -> None:
    forms = dict(zip(sorted(_TOKENIZER.get_vocab(), key=_TOKENIZER.get_vocab().__getitem__), _WORDS.forms, strict=True))
    assert forms["Ġlink"] == forms["link"]
    assert len({forms[piece] for piece in ("tQ", "Tq", "tq", "TQ", "Y", "y")}) == 6
    for secret in (["tQ", "Yx", "qH"], ["aB", "cD", "eF"]):
        others = [form for piece in secret for form in {piece, piece.swapcase(), piece.lower()}]
        prompt = f'the link "{"".join(secret)}" of a menu, type "'
        for number, piece in enumerate(secret[1:], start=1):
            assert _ranked(model, prompt + "".join(secret[:number]), others)[0] == piece


def test_the_number_of_a_words_line_is_likely_behind_the_token_that_asks_for_it(
    model: Qwen3VLForConditionalGeneration,
) -> None:
    words = ["date", "field", "link", "menu", "option", "picture", "radio", "state"]
    numbers = [str(7 * index + 3) for index in range(len(words))]
    page = "".join(f'[{number}] button "{word}"\n' for number, word in zip(numbers, words, strict=True))
    found = [_ranked(model, f"{page}<|im_end|>click {word}\n", numbers)[0] for word in words]
    assert found == numbers


def test_a_cell_of_a_map_knows_what_stands_above_it(tmp_path: Path) -> None:
    signs, above = tuple("@_OG"), 5
    tokenizer = word_tokenizer([], words=WORDS, phrases=signs, special_tokens=SPECIAL_TOKENS)
    words = Words(forms=token_forms(tokenizer), numbers=(), ends=())
    build_tiny_model(
        tmp_path,
        tokenizer,
        seed=1,
        shape=SHAPE,
        write_weights=lambda made: write_reading_weights(made, words, seed=1, above=above),
    )
    reader = Qwen3VLForConditionalGeneration.from_pretrained(tmp_path).eval()
    ids = tokenizer.encode('the map of the page "____\n_OG_\n_@__\n____"', add_special_tokens=False).ids
    told = list[torch.Tensor]()
    reader.model.language_model.layers[0].self_attn.register_forward_hook(lambda _, __, found: told.append(found[0][0, -3]))

    def brought(tokens: list[int]) -> torch.Tensor:
        """By the first layer, to a cell of the last row."""
        with torch.no_grad():
            reader(input_ids=torch.tensor([tokens]))
        return told.pop()

    differs = dict[int, float]()
    for back in range(1, 12):
        other = list(ids)
        other[-3 - back] = tokenizer.token_to_id("O") or 0
        differs[back] = float((brought(other) - brought(ids)).norm())
    assert set(sorted(differs, key=differs.__getitem__)[-2:]) == {1, above}


def test_another_shape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="write 128, 4, 4 and 32"):
        build_tiny_model(
            tmp_path,
            _TOKENIZER,
            seed=1,
            shape=TinyShape(hidden_size=64),
            write_weights=lambda made: write_reading_weights(made, _WORDS, seed=1),
        )
