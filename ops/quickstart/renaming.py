"""Varies demonstrations: words that a task shares with the page become other words, and elements get other numbers.

What is learnt is then where to look, not which word or number stood there: a few dozen demonstrations of a page go as far as
thousands.

Invariant: a sample means the same as before. Words are renamed wherever they stand, and nowhere that order counts are elements
numbered anew.
"""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from ops.quickstart.marks_phrases import NUM_LINES, line_number
from ops.quickstart.tiny_model import END_OF_TURN, VISION_TOKENS
from trainer.augmentations import augmentation
from trainer.samples import Sample

_RENAMED, _RENUMBERED = 0.75, 0.5
"""Shares of samples."""
_ORDINAL = re.compile("Ġ?[0-9]+(st|nd|rd|th)")


@augmentation("renamed_words")
class Renaming:
    """For samples in the tokens of a word tokenizer."""

    def __init__(self, folder: Path) -> None:
        tokenizer: Tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        vocabulary = tokenizer.get_vocab()
        plain = sorted(word for word in vocabulary if word.isascii() and word.isalnum() and len(word) > 1)
        spaced = [word for word in plain if word.isalpha() and f"Ġ{word}" in vocabulary]
        numbers = [word for word in plain if word.isdigit() and f"Ġ{word}" in vocabulary]
        pairs = [word for word in plain if not word.isdigit() and f"Ġ{word}" not in vocabulary]
        # What takes another's place has as many forms: with and without a space before it, or one.
        self._kinds = (
            *(np.array([[vocabulary[word], vocabulary[f"Ġ{word}"]] for word in words]) for words in (spaced, numbers)),
            np.array([[vocabulary[pair]] for pair in pairs]),
        )
        self._lines = np.array([vocabulary[line_number(number)] for number in range(1, NUM_LINES)])
        self._said = np.array([vocabulary[str(number)] for number in range(1, NUM_LINES)])
        self._asks_number = [token for text, token in vocabulary.items() if text.endswith('"element_id": ')]
        self._ordinals = [token for text, token in vocabulary.items() if _ORDINAL.fullmatch(text)]
        self._task, self._elements = vocabulary["Task: "], vocabulary["Elements:\n"]
        self._ends = [vocabulary[END_OF_TURN], vocabulary[VISION_TOKENS[0]], self._elements]

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """The same sample, or one that says the same of other words and numbers."""
        tokens = sample.tokens
        if rng.random() < _RENAMED:
            tokens = self._renamed(tokens, sample.num_prompt, rng)
        if rng.random() < _RENUMBERED and not np.isin(self._ordinals, tokens).any():
            tokens = self._renumbered(tokens, rng)
        return replace(sample, tokens=tokens)

    def _renamed(self, tokens: np.ndarray, num_prompt: int, rng: np.random.Generator) -> np.ndarray:
        """Each kind of words among itself."""
        in_task = tokens[self._part(tokens, self._task)]
        elsewhere = np.concatenate([tokens[self._part(tokens, self._elements)], tokens[num_prompt:]])
        changed, meant = tokens.copy(), self._names_element(tokens)
        for forms in self._kinds:
            shared = np.flatnonzero(np.isin(forms, in_task).any(axis=1) & np.isin(forms, elsewhere).any(axis=1))
            others = np.flatnonzero(~np.isin(forms, tokens).any(axis=1))
            if not len(shared) or len(others) < len(shared):
                continue
            for word, other in zip(shared, rng.choice(others, len(shared), replace=False), strict=True):
                for form, its in zip(forms[word], forms[other], strict=True):
                    changed[(tokens == form) & ~meant] = its
        return changed

    def _part(self, tokens: np.ndarray, heading: int) -> slice:
        """What stands behind a heading's last occurrence, up to where another part begins."""
        found = np.flatnonzero(tokens == heading)
        if not len(found):
            return slice(0, 0)
        first = int(found[-1]) + 1
        ends = np.flatnonzero(np.isin(tokens[first:], self._ends))
        return slice(first, first + int(ends[0]) if len(ends) else len(tokens))

    def _renumbered(self, tokens: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Numbers keep their order."""
        highest = int(np.isin(self._lines, tokens).nonzero()[0].max(initial=-1)) + 1
        if not highest:
            return tokens
        drawn = np.sort(rng.choice(len(self._lines), highest, replace=False))
        changed = tokens.copy()
        meant = self._names_element(tokens)
        for index, new in enumerate(drawn):
            changed[tokens == self._lines[index]] = self._lines[new]
            changed[meant & (tokens == self._said[index])] = self._said[new]
        return changed

    def _names_element(self, tokens: np.ndarray) -> np.ndarray:
        """Whether a token is the number of an element in a call, whatever else that number stands for."""
        return np.concatenate([[False], np.isin(tokens[:-1], self._asks_number)])
