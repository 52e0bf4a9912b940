"""A tiny model that says some of a few sentences, whatever it sees: enough for episodes that end in different ways."""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import Qwen3VLForConditionalGeneration

from ops.quickstart.tiny_model import END_OF_TURN, build_tiny_model, sentence_tokenizer

_COMMON, _GAIN = 4.0, 2.0
"""Every embedding has the first number, so that what the last layer gives has a known direction; the second is along it."""


def build_talkative(folder: Path, sentences: Sequence[str], prompts: Sequence[str]) -> Path:
    """Writes the model.

    Args:
        folder: created if missing.
        sentences: of what it says any number, also none, each as likely as the end of its turn. They have no digits: each is
            one token.
        prompts: texts that its tokenizer shortens.
    """
    tokenizer = sentence_tokenizer([*sentences, *prompts])
    ids = [tokenizer.encode(sentence).ids for sentence in sentences]
    assert all(len(found) == 1 for found in ids), "a sentence is more than one token"
    said = [found[0] for found in ids] + [tokenizer.token_to_id(END_OF_TURN)]

    def write(model: Qwen3VLForConditionalGeneration) -> None:
        with torch.no_grad():
            model.model.language_model.embed_tokens.weight[:, 0] = _COMMON
            model.lm_head.weight[:, 0] = 0.0
            model.lm_head.weight[said, 0] = _GAIN

    build_tiny_model(folder, tokenizer, seed=1, write_weights=write)
    return folder
