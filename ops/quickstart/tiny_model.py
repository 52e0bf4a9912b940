"""Builds a tiny but real Qwen3-VL with its own tokenizer, so that the demo and the tests need no download.

The folder written is an ordinary one (safetensors, configuration, tokenizer, chat template, processor, generation
settings): transformers and vLLM load it by its path, like any other Qwen3-VL. Weights are random, apart from the vision
tower's position table (2-D sines and cosines) and its first layer (smooth filters); the model learns to see quickly,
but knows nothing.

Invariants: embeddings are not tied (a tied `lm_head` would keep its old value when vLLM reloads weights in place);
every byte string can be encoded; every digit is one token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GenerationConfig,
    PreTrainedTokenizerFast,
    Qwen2VLImageProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)

END_OF_TEXT = "<|endoftext|>"
START_OF_TURN = "<|im_start|>"
END_OF_TURN = "<|im_end|>"
VISION_TOKENS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
SPECIAL_TOKENS = (END_OF_TEXT, START_OF_TURN, END_OF_TURN, *VISION_TOKENS)
ROLES = ("system\n", "user\n", "assistant\n", "\n")

CHAT_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.content is string -%}
{{ message.content }}
{%- else -%}
{%- for part in message.content -%}
{%- if part.type == 'image' or 'image' in part or 'image_url' in part -%}
<|vision_start|><|image_pad|><|vision_end|>
{%- elif 'text' in part -%}
{{ part.text }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}
"""


@dataclass(frozen=True, kw_only=True)
class TinyShape:
    """Sizes of the tiny model; RECIPE.md says what the defaults reach."""

    hidden_size: int = 64
    """Width of the language model and of the vision tower."""
    num_layers: int = 2
    """Language layers."""
    vision_depth: int = 2
    """Vision layers; the first also feeds the language model directly (deepstack)."""
    feed_forward_size: int = 192
    """Inner width of every feed-forward layer."""
    num_heads: int = 2
    """Attention heads; language heads have `head_dim` 32."""
    num_key_value_heads: int = 1
    """Of the language model."""
    rope_theta: float = 10_000.0
    """Base of the rotary frequencies."""
    max_screenshot_pixels: int = 14_000
    """Screenshots are shrunk below this; a 160 x 210 page becomes 96 x 128, that is 12 image tokens."""
    initializer_range: float = 0.08
    """Standard deviation of the random weights."""


def build_tiny_model(
    folder: Path,
    tokenizer: Tokenizer,
    *,
    seed: int,
    shape: TinyShape | None = None,
    write_weights: Callable[[Qwen3VLForConditionalGeneration], None] = lambda model: None,
) -> None:
    """Writes an untrained tiny Qwen3-VL to `folder`.

    Args:
        folder: created if missing; files of an earlier model in it are overwritten.
        tokenizer: has `SPECIAL_TOKENS`.
        seed: fixes the random weights.
        shape: sizes, `TinyShape()` if left out.
        write_weights: puts others in the place of random ones.
    """
    shape = shape or TinyShape()
    folder.mkdir(parents=True, exist_ok=True)
    wrapped = _wrap_tokenizer(tokenizer)
    model = _build_model(_model_config(shape, wrapped), seed)
    write_weights(model)
    model.save_pretrained(folder)
    _build_processor(shape, wrapped).save_pretrained(folder)


def sentence_tokenizer(texts: Sequence[str], *, max_vocabulary: int = 4096) -> Tokenizer:
    """Trains byte-level BPE without word splitting, so that whole sentences become single tokens; digits stay single.

    A prompt of thousands of characters costs a few tokens then. Training stops before `max_vocabulary` where every text is one
    token.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=max_vocabulary,
        min_frequency=1,
        show_progress=False,
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator([*ROLES, *texts], trainer=trainer)
    return tokenizer


def _wrap_tokenizer(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END_OF_TURN,
        pad_token=END_OF_TEXT,
        extra_special_tokens=[START_OF_TURN, *VISION_TOKENS],
        chat_template=CHAT_TEMPLATE,
        model_max_length=4096,
        clean_up_tokenization_spaces=False,
    )


def _build_processor(shape: TinyShape, tokenizer: PreTrainedTokenizerFast) -> Qwen3VLProcessor:
    # Pages are mostly light: with this mean an empty area is near zero, and what is drawn on it stands out. The wide
    # deviation keeps pixels small: a patch has 1536 of them, and one Adam step moves all their weights together.
    pixels = {
        "image_mean": [0.9] * 3,
        "image_std": [1.5] * 3,
        "patch_size": 16,
        "merge_size": 2,
        "temporal_patch_size": 2,
    }
    size = {"shortest_edge": 32 * 32, "longest_edge": shape.max_screenshot_pixels}
    return Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(size=size, **pixels),
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(size=size, **pixels),
        chat_template=CHAT_TEMPLATE,
    )


def _model_config(shape: TinyShape, tokenizer: PreTrainedTokenizerFast) -> Qwen3VLConfig:
    head_dim = 32
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL_TOKENS}
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.feed_forward_size,
        "num_hidden_layers": shape.num_layers,
        "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.num_key_value_heads,
        "head_dim": head_dim,
        "max_position_embeddings": 4096,
        "initializer_range": shape.initializer_range,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": shape.rope_theta,
            "mrope_section": [6, 5, 5],
            "mrope_interleaved": True,
        },
        "bos_token_id": None,
        "eos_token_id": ids[END_OF_TURN],
        "pad_token_id": ids[END_OF_TEXT],
    }
    vision = {
        "depth": shape.vision_depth,
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.feed_forward_size,
        "num_heads": shape.num_heads,
        "out_hidden_size": shape.hidden_size,
        "num_position_embeddings": 256,
        "deepstack_visual_indexes": [0],
        "initializer_range": shape.initializer_range,
    }
    return Qwen3VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=False,
        dtype="float32",
    )


def _build_model(config: Qwen3VLConfig, seed: int) -> Qwen3VLForConditionalGeneration:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3VLForConditionalGeneration(config)
        with torch.no_grad():
            visual = model.model.visual
            visual.pos_embed.weight.copy_(_position_table(*visual.pos_embed.weight.shape))
            visual.patch_embed.proj.weight.copy_(_smooth_filters(visual.patch_embed.proj.weight))
    text_config = config.text_config
    model.generation_config = GenerationConfig(
        do_sample=True, eos_token_id=text_config.eos_token_id, pad_token_id=text_config.pad_token_id
    )
    return model


def _position_table(num_positions: int, width: int, scale: float = 1.0) -> torch.Tensor:
    """Sines and cosines of row and column: shape (num_positions, width), rows of a square grid one after another.

    A quarter of the width each goes to the row's sine and cosine and to the column's; wavelengths are spread
    geometrically from twice the grid's side down to about two cells.
    """
    side = math.isqrt(num_positions)
    waves = torch.logspace(0, math.log2(side / 2), width // 4, base=2.0)
    angles = torch.arange(side)[:, None] * waves * math.pi / side
    line = torch.cat([angles.sin(), angles.cos()], dim=1)
    rows = line[:, None, :].expand(side, side, -1)
    columns = line[None, :, :].expand(side, side, -1)
    return scale * torch.cat([rows, columns], dim=2).reshape(num_positions, width)


def _smooth_filters(weight: torch.Tensor, cells: int = 4, gain: float = 5.0) -> torch.Tensor:
    """Random filters of `weight`'s shape (out, channels, frames, height, width), constant on `cells` x `cells` blocks.

    White-noise filters would mostly see JPEG noise; these see blobs of colour. `gain` is the response's standard
    deviation to a screenshot of independent unit blocks.
    """
    out, channels, frames, height, width = weight.shape
    blocks = torch.randn(out, channels, 1, cells, cells)
    filters = blocks.repeat_interleave(height // cells, dim=3).repeat_interleave(width // cells, dim=4)
    fan = channels * frames * height * width
    block_pixels = frames * (height // cells) * (width // cells)
    return filters.expand(-1, -1, frames, -1, -1) * (gain / math.sqrt(fan * block_pixels))
