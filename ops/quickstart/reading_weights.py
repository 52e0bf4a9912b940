"""Initial weights with which a tiny language model can look things up, before it has learnt what to look for.

With random weights, demonstrations are learnt by heart long before looking up is. Here every token's vector has a part for
what the token is, and the first layer puts beside it what the token before was, and the number of the line that it stands in.
From the second layer on, one head finds where the word before occurs in the prompt and brings that line's number, another
finds what followed the present word the last time; both write to the output. Which of them counts when, and everything else,
is learnt. Where maps are read, the first layer puts also beside a cell what stands above it: without that a policy learns to
go round what is beside it, and never what is above or below.

    dimensions of a hidden state, for a width of 128
    0-31     token    what the token is
    32       one      the same for every token
    33-64    before   what the token before it was, and turned elsewhere, on a map, the one above it
    65-96    line     the number in brackets before it
    97-127   output   what the next token is to be
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from transformers import Qwen3VLForConditionalGeneration
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextAttention as Attention

_TOKEN, _ONE, _BEFORE, _LINE, _OUTPUT = slice(0, 32), 32, slice(33, 65), slice(65, 97), slice(97, 128)
_IN_LINE = 15
"""Dimension of a head, in the slowest plane, by which it asks for tokens that stand in a line."""
_INSIDE, _OUTSIDE = 0.5, 1.3
WIDTH, HEAD_SIZE, NUM_HEADS = 128, 32, 4
_SIZE = HEAD_SIZE
_NOISE = 0.05
_TOKEN_NORM, _ONE_NORM = 5.6, 4.0
_COPIED = 0.6
"""Norm of what the first layer copies, of a token's own."""
_WRITTEN = 1.0
_POSITION_GAIN, _CONTENT_GAIN = 1.9, 1.6
"""Of the norms of queries and keys: how sharply a head looks."""
_OUTPUT_SCALE = 0.4
_ALIKE = 0.9
"""Cosine of the forms of one word: with a space before it, with a capital."""
_END = 0.2
"""How much the end of all lines is like itself, beside the mark that it shares with numbers: it brings next to nothing."""
_NEAR, _LINES = (0, 1, 2), (2, 3, 4)
"""Rotary frequencies by which the first layer looks some tokens back, and for the nearest number in brackets."""
_SLOW = range(5, 15)
"""Rotary frequencies that hardly turn within a prompt: words are compared in these."""


@dataclass(frozen=True)
class Words:
    """What the weights have to know of a vocabulary."""

    forms: Sequence[str]
    """By token: what it says; equal for the forms of one word, with a space or a capital."""
    numbers: Sequence[int]
    """Tokens that number a line."""
    ends: Sequence[int]
    """Tokens behind which no line goes on."""


@dataclass(frozen=True)
class _Marks:
    """Directions, shape (32,), at right angles to each other and to what any word is."""

    line: torch.Tensor
    """Of numbers that begin a line, and of what ends all lines; behind a number, that a token stands in a line."""
    end: torch.Tensor

    @property
    def others(self) -> torch.Tensor:
        """(32, 32): leaves both out."""
        return torch.eye(_SIZE) - torch.outer(self.line, self.line) - torch.outer(self.end, self.end)


def write_reading_weights(model: Qwen3VLForConditionalGeneration, words: Words, *, seed: int, above: int = 0) -> None:
    """Overwrites the text weights of a Qwen3-VL of hidden size `WIDTH` with `NUM_HEADS` heads of `HEAD_SIZE`, as many of them
    for keys and values, and untied embeddings.

    `above`: how many tokens before a cell of a map the one above it stands; 0: there are no maps.

    Raises:
        ValueError: the model has another shape.
    """
    text = model.config.text_config
    shape = (text.hidden_size, text.num_attention_heads, text.num_key_value_heads, text.head_dim)
    if shape != (WIDTH, NUM_HEADS, NUM_HEADS, HEAD_SIZE):
        raise ValueError(f"hidden size, heads, key-value heads and head size are {shape}: write 128, 4, 4 and 32")
    rng = torch.Generator().manual_seed(seed)
    language = model.model.language_model
    frequencies = float(text.rope_parameters["rope_theta"]) ** (-torch.arange(16) / 16)
    with torch.no_grad():
        marks = _Marks(*torch.linalg.qr(torch.randn(_SIZE, 2, generator=rng))[0].T)
        vectors = _token_vectors(words, marks, rng)
        embeddings = _embeddings(vectors, words, marks, rng)
        language.embed_tokens.weight.copy_(embeddings)
        head = _NOISE * _OUTPUT_SCALE * torch.randn(len(vectors), WIDTH, generator=rng)
        head[:, _OUTPUT] = _OUTPUT_SCALE * _TOKEN_NORM * vectors[:, :31]
        model.lm_head.weight.copy_(head)
        for layer in language.layers:
            for projection in (layer.mlp.gate_proj, layer.mlp.up_proj, layer.mlp.down_proj):
                projection.weight.copy_(_small(projection, rng))
        first, *others = language.layers
        _write_first(first.self_attn, marks, frequencies, above, rng)
        for layer in others:
            _write_lookup(layer.self_attn, marks, rng)


def _token_vectors(words: Words, marks: "_Marks", rng: torch.Generator) -> torch.Tensor:
    """Unit vectors, shape (tokens, 32), at right angles to the marks: those of one word's forms are alike."""
    own = _unit(torch.randn(len(words.forms), _SIZE, generator=rng))
    first: dict[str, int] = {}
    of_word = own[[first.setdefault(form, index) for index, form in enumerate(words.forms)]]
    vectors = math.sqrt(_ALIKE) * of_word + math.sqrt(1 - _ALIKE) * _unit(torch.randn(own.shape, generator=rng))
    return _unit(vectors @ marks.others)


def _embeddings(vectors: torch.Tensor, words: Words, marks: "_Marks", rng: torch.Generator) -> torch.Tensor:
    embeddings = _NOISE * torch.randn(len(vectors), WIDTH, generator=rng)
    embeddings[:, _TOKEN] = _TOKEN_NORM * vectors
    numbers, ends = list(words.numbers), list(words.ends)
    embeddings[numbers, _TOKEN] = _TOKEN_NORM * _unit(vectors[numbers] + marks.line)
    embeddings[ends, _TOKEN] = _TOKEN_NORM * _unit(_END * vectors[ends] + marks.line + marks.end)
    embeddings[:, _ONE] = _ONE_NORM
    return embeddings


def _write_first(attention: Attention, marks: _Marks, frequencies: torch.Tensor, above: int, rng: torch.Generator) -> None:
    """Head 0 looks one token back, head 1 for the nearest number in brackets, head 2 as far back as the cell above."""
    query, key, value, out = (_small(getattr(attention, name), rng) for name in _PROJECTIONS)
    attention.q_norm.weight.fill_(_POSITION_GAIN)
    attention.k_norm.weight.fill_(_POSITION_GAIN)
    back, line = (slice(head * _SIZE, (head + 1) * _SIZE) for head in (0, 1))
    query[back, _ONE] = _direction(_NEAR, frequencies, 0.0)
    key[back, _ONE] = _direction(_NEAR, frequencies, 1.0)
    value[back, _TOKEN] = torch.eye(_SIZE)
    out[_BEFORE, back] = _COPIED * torch.eye(_SIZE) / _PER_NORM
    query[line, _ONE] = _direction(_LINES, frequencies, 0.0)
    # What is no number has a key in a plane of its own, where no query lies.
    key[line, _ONE] = 0.3 * _direction((15,), frequencies, 0.0)
    key[line, _TOKEN] += 3.0 * torch.outer(_direction(_LINES, frequencies, 0.0), marks.line)
    value[line, _TOKEN] = marks.others + torch.outer(marks.line, _INSIDE * marks.line - _OUTSIDE * marks.end)
    out[_LINE, line] = _COPIED * math.sqrt(2.0) * torch.eye(_SIZE) / _PER_NORM
    if above:
        up = slice(2 * _SIZE, 3 * _SIZE)
        query[up, _ONE] = _direction(_NEAR, frequencies, 0.0)
        key[up, _ONE] = _direction(_NEAR, frequencies, float(above))
        value[up, _TOKEN] = torch.eye(_SIZE)
        turned, _ = torch.linalg.qr(torch.randn(_SIZE, _SIZE, generator=rng))
        out[_BEFORE, up] = _COPIED * turned / _PER_NORM
    for name, weight in zip(_PROJECTIONS, (query, key, value, out), strict=True):
        getattr(attention, name).weight.copy_(weight)


def _write_lookup(attention: Attention, marks: _Marks, rng: torch.Generator) -> None:
    """Head 0 finds the word before among tokens of lines and brings their number; head 1 finds the present word among those
    before, and brings what followed."""
    query, key, value, out = (_small(getattr(attention, name), rng) for name in _PROJECTIONS)
    attention.q_norm.weight.fill_(_CONTENT_GAIN)
    attention.k_norm.weight.fill_(_CONTENT_GAIN)
    compared = _slow_basis(rng)
    for head, asked, among, brought in ((0, _BEFORE, _TOKEN, _LINE), (1, _TOKEN, _BEFORE, _TOKEN)):
        rows = slice(head * _SIZE, (head + 1) * _SIZE)
        query[rows, asked] = compared
        key[rows, among] = compared
        value[rows, brought] = marks.others
        out[_OUTPUT, rows] = _WRITTEN * torch.eye(_SIZE)[:31] / _PER_NORM
    query[_IN_LINE, _ONE] = 0.4
    key[_IN_LINE, _LINE] = 1.7 * marks.line
    for name, weight in zip(_PROJECTIONS, (query, key, value, out), strict=True):
        getattr(attention, name).weight.copy_(weight)


_PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj")
_PER_NORM = math.sqrt(WIDTH) / math.hypot(_TOKEN_NORM, _ONE_NORM)
"""How much longer a token's part is behind the norm before a layer."""


def _small(projection: nn.Linear, rng: torch.Generator) -> torch.Tensor:
    return 0.02 * torch.randn(projection.weight.shape, generator=rng)


def _direction(pairs: Sequence[int], frequencies: torch.Tensor, turned: float) -> torch.Tensor:
    """Of unit length, in the planes of some rotary frequencies, as rotation by `turned` positions leaves it."""
    direction = torch.zeros(_SIZE)
    for pair in pairs:
        angle = float(frequencies[pair]) * turned
        direction[pair], direction[pair + 16] = math.cos(angle), math.sin(angle)
    return _unit(direction)


def _slow_basis(rng: torch.Generator) -> torch.Tensor:
    """(32, 32): projects what a token is onto the planes that hardly turn, keeping angles as well as may be."""
    planes = [*_SLOW, *(pair + 16 for pair in _SLOW)]
    basis = torch.zeros(_SIZE, _SIZE)
    orthogonal, _ = torch.linalg.qr(torch.randn(_SIZE, len(planes), generator=rng))
    basis[planes] = orthogonal.T
    return basis


def _unit(vector: torch.Tensor) -> torch.Tensor:
    return nn.functional.normalize(vector, dim=-1)
