"""Varies steps on a square map: it is turned and mirrored, and the moves with it, so that one map teaches as much as eight.

Invariant: a sample means the same as before. Buttons stay where they are: a move that becomes another one is pressed by that
one's number.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from ops.quickstart.marks_phrases import NUM_LINES, line_number
from ops.quickstart.tiny_model import END_OF_TURN, VISION_TOKENS
from trainer.augmentations import augmentation
from trainer.samples import Sample

_SIGNS = "@_OG+$*.#"
"""Of the maps of frozen lakes and of Sokoban's rooms."""
_MOVES = {(0, -1): "Left", (-1, 0): "Up", (1, 0): "Down", (0, 1): "Right"}
"""Names of buttons, by the rows and columns that they move."""


@augmentation("turned_maps")
class TurnedMaps:
    """For samples in the tokens of a tokenizer that reads a map sign by sign."""

    def __init__(self, folder: Path) -> None:
        tokenizer: Tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        vocabulary = tokenizer.get_vocab()
        self._signs = [vocabulary[sign] for sign in _SIGNS if sign in vocabulary]
        self._elements = vocabulary["Elements:\n"]
        self._ends = [vocabulary[END_OF_TURN], vocabulary[VISION_TOKENS[0]]]
        self._moves = {move: vocabulary[name] for move, name in _MOVES.items()}
        self._numbers = {vocabulary[line_number(number)]: vocabulary[str(number)] for number in range(1, NUM_LINES)}
        self._asks_number = [token for text, token in vocabulary.items() if text.endswith('"element_id": ')]

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """One of eight that are equally likely, itself among them; itself where a map or a button is missing."""
        mirrored, times = bool(rng.integers(2)), int(rng.integers(4))
        tokens, said = sample.tokens.copy(), np.ones(len(sample.tokens), dtype=bool)
        numbers: dict[int, int] = {}
        for first in np.flatnonzero(sample.tokens == self._elements):
            part = slice(int(first), self._end(sample.tokens, int(first)))
            cells = self._map(sample.tokens[part])
            pressed_by = self._pressed_by(sample.tokens[part])
            if cells is None or len(pressed_by) < len(_MOVES):
                return sample
            places = part.start + cells
            tokens[places] = np.rot90(sample.tokens[places.T if mirrored else places], times)
            said[part] = False
            numbers |= {pressed_by[old]: pressed_by[new] for old, new in self._turned(mirrored, times).items()}
        names, called = self._turned(mirrored, times), np.isin(np.roll(sample.tokens, 1), self._asks_number)
        for others, where in ((names, said), (numbers, called)):
            for old, new in others.items():
                tokens[where & (sample.tokens == old)] = new
        return replace(sample, tokens=tokens)

    def _turned(self, mirrored: bool, times: int) -> Mapping[int, int]:
        """By the token of a move's name, that of the move which it becomes."""
        turned = {}
        for move, name in self._moves.items():
            rows, columns = reversed(move) if mirrored else move
            for _ in range(times):
                rows, columns = -columns, rows
            turned[name] = self._moves[rows, columns]
        return turned

    def _end(self, tokens: np.ndarray, first: int) -> int:
        """Of the list of elements that begins there."""
        ends = np.flatnonzero(np.isin(tokens[first:], self._ends))
        return first + int(ends[0]) if len(ends) else len(tokens)

    def _map(self, elements: np.ndarray) -> np.ndarray | None:
        """(size, size): where the cells stand; None where there is no square map."""
        cells = np.flatnonzero(np.isin(elements, self._signs))
        rows = np.split(cells, np.flatnonzero(np.diff(cells) > 1) + 1)
        whole = [row for row in rows if len(row) == len(rows)]
        return np.stack(whole) if len(whole) == len(rows) else None

    def _pressed_by(self, elements: np.ndarray) -> dict[int, int]:
        """By the token of a move's name, that of the number by which its button is pressed."""
        found, number = {}, -1
        for token in elements.tolist():
            number = self._numbers.get(token, number)
            if token in self._moves.values():
                found[token] = number
        return found
