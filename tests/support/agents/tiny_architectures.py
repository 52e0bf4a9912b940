"""A tiny model of random weights of every architecture that is supported, as an ordinary model folder."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer
from transformers import AutoConfig, AutoModelForImageTextToText, GenerationConfig, PreTrainedTokenizerFast, ProcessorMixin
from transformers.models.glm4v import Glm4vImageProcessor, Glm4vProcessor, Glm4vVideoProcessor
from transformers.models.got_ocr2 import GotOcr2ImageProcessor
from transformers.models.internvl import InternVLProcessor, InternVLVideoProcessor
from transformers.models.qwen2_5_vl import Qwen2_5_VLProcessor
from transformers.models.qwen2_vl import Qwen2VLImageProcessor, Qwen2VLVideoProcessor
from transformers.models.qwen3_5 import Qwen3_5Tokenizer
from transformers.models.qwen3_vl import Qwen3VLProcessor, Qwen3VLVideoProcessor

from agents.prompts import system_prompt
from ops.quickstart.tiny_model import CHAT_TEMPLATE, END_OF_TEXT, END_OF_TURN, START_OF_TURN, VISION_TOKENS, sentence_tokenizer
from trainer.model.layers import gathered_layers
from trainer.model.stored_weights import keep_published_layout, stored_layers
from trainer.model.tensor_files import write_weights

_WIDTH, _HEADS, _HEAD, _INNER = 64, 2, 32, 192
_MAX_PIXELS = 14_000
_GLM_TOKENS = (
    *("[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|image|>", "<|video|>"),
    *("<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>"),
)
_GLM_TEMPLATE = """\
[gMASK]<sop>
{%- for message in messages -%}
<|{{ message.role }}|>
{% if message.content is string -%}
{{ message.content }}
{%- else -%}
{%- for part in message.content -%}
{%- if part.type == 'image' -%}
<|begin_of_image|><|image|><|end_of_image|>
{%- elif 'text' in part -%}
{{ part.text }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|assistant|>
{% endif -%}
"""
_INTERN_TOKENS = ("<img>", "</img>", "<IMG_CONTEXT>", "<video>")
_TILE, _TILE_PATCH = 32, 8


def tokenizer_with(tokens: Sequence[str]) -> Tokenizer:
    made = sentence_tokenizer([system_prompt("vanilla"), "Task: click the button\n"])
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in tokens])
    return made


def _wrapped(made: Tokenizer, *, words: bool, **named: Any) -> PreTrainedTokenizerFast:
    """With `words`, text is split as transformers splits every Qwen3.5's, whatever the tokenizer's file says."""
    if not words:
        return PreTrainedTokenizerFast(tokenizer_object=made, **named)
    model = json.loads(made.to_str())["model"]
    named["extra_special_tokens"] = [START_OF_TURN, *VISION_TOKENS]
    return Qwen3_5Tokenizer(vocab=model["vocab"], merges=[tuple(pair) for pair in model["merges"]], **named)


def _text(tokenizer: PreTrainedTokenizerFast, **others: object) -> dict[str, object]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": _WIDTH,
        "intermediate_size": _INNER,
        "num_hidden_layers": 2,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": 1,
        "head_dim": _HEAD,
        "max_position_embeddings": 4096,
        "initializer_range": 0.08,
        "eos_token_id": tokenizer.convert_tokens_to_ids(END_OF_TURN),
        "pad_token_id": tokenizer.convert_tokens_to_ids(END_OF_TEXT),
        "bos_token_id": None,
        "tie_word_embeddings": False,
        **others,
    }


def _rope(*section: int, interleaved: bool = False, **others: object) -> dict[str, object]:
    more = {"mrope_interleaved": True} if interleaved else {}
    return {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": list(section), **more, **others}


def _vision(**others: object) -> dict[str, object]:
    sizes = {"depth": 2, "hidden_size": _WIDTH, "intermediate_size": _INNER, "num_heads": _HEADS, "out_hidden_size": _WIDTH}
    return {**sizes, "initializer_range": 0.08, **others}


def _qwen(kind: str, text: Mapping[str, object], vision: Mapping[str, object]) -> Callable[..., dict[str, object]]:
    def config(tokenizer: PreTrainedTokenizerFast) -> dict[str, object]:
        start, end, image, video = (tokenizer.convert_tokens_to_ids(token) for token in VISION_TOKENS)
        return {
            "model_type": kind,
            "text_config": _text(tokenizer, **text),
            "vision_config": _vision(**vision),
            "image_token_id": image,
            "video_token_id": video,
            "vision_start_token_id": start,
            "vision_end_token_id": end,
        }

    return config


def _glm(tokenizer: PreTrainedTokenizerFast) -> dict[str, object]:
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in _GLM_TOKENS}
    vision = _vision(image_size=56, patch_size=14, spatial_merge_size=2, temporal_patch_size=2)
    return {
        "model_type": "glm4v",
        "text_config": _text(tokenizer, attention_bias=True, rope_parameters=_rope(4, 2, 2, partial_rotary_factor=0.5)),
        "vision_config": vision,
        "image_token_id": ids["<|image|>"],
        "video_token_id": ids["<|video|>"],
        "image_start_token_id": ids["<|begin_of_image|>"],
        "image_end_token_id": ids["<|end_of_image|>"],
        "video_start_token_id": ids["<|begin_of_video|>"],
        "video_end_token_id": ids["<|end_of_video|>"],
    }


def _intern(tokenizer: PreTrainedTokenizerFast) -> dict[str, object]:
    return {
        "model_type": "internvl",
        "text_config": _text(tokenizer, model_type="qwen2", rope_parameters={"rope_type": "default", "rope_theta": 1e4}),
        "vision_config": {
            "model_type": "internvl_vision",
            "hidden_size": _WIDTH,
            "intermediate_size": _INNER,
            "num_hidden_layers": 2,
            "num_attention_heads": _HEADS,
            "image_size": [_TILE, _TILE],
            "patch_size": [_TILE_PATCH, _TILE_PATCH],
            "initializer_range": 0.08,
        },
        "image_token_id": tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"),
        "downsample_ratio": 0.5,
    }


def _pixels(patch: int, **size: int) -> dict[str, Any]:
    return {"size": size, "patch_size": patch, "merge_size": 2, "temporal_patch_size": 2}


def _processor(kind: str, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    bounds = {"shortest_edge": 32 * 32, "longest_edge": _MAX_PIXELS}
    match kind:
        case "qwen2_5_vl":
            old = _pixels(14, **bounds)
            return Qwen2_5_VLProcessor(
                Qwen2VLImageProcessor(**old), tokenizer, Qwen2VLVideoProcessor(**old), chat_template=CHAT_TEMPLATE
            )
        case "glm4v":
            twice = _pixels(14, shortest_edge=28 * 28, longest_edge=2 * _MAX_PIXELS)
            return Glm4vProcessor(
                Glm4vImageProcessor(**twice), tokenizer, Glm4vVideoProcessor(**twice), chat_template=_GLM_TEMPLATE
            )
        case "internvl":
            size = {"height": _TILE, "width": _TILE}
            return InternVLProcessor(
                GotOcr2ImageProcessor(size=size, max_patches=6),
                tokenizer,
                InternVLVideoProcessor(size=size),
                image_seq_length=(_TILE // _TILE_PATCH // 2) ** 2,
                chat_template=CHAT_TEMPLATE.replace("<|vision_start|><|image_pad|><|vision_end|>", "<IMG_CONTEXT>\n"),
            )
    new = _pixels(16, **bounds)
    return Qwen3VLProcessor(Qwen2VLImageProcessor(**new), tokenizer, Qwen3VLVideoProcessor(**new), chat_template=CHAT_TEMPLATE)


_NEW_VISION = {"patch_size": 16, "num_position_embeddings": 256}
_CONFIGS: Mapping[str, Callable[[PreTrainedTokenizerFast], dict[str, object]]] = {
    "qwen2_5_vl": _qwen(
        "qwen2_5_vl",
        {"rope_parameters": _rope(4, 6, 6)},
        {"patch_size": 14, "window_size": 56, "fullatt_block_indexes": [1]},
    ),
    "qwen3_vl": _qwen(
        "qwen3_vl", {"rope_parameters": _rope(6, 5, 5, interleaved=True)}, {**_NEW_VISION, "deepstack_visual_indexes": [0]}
    ),
    "qwen3_vl_moe": _qwen(
        "qwen3_vl_moe",
        {
            "rope_parameters": _rope(6, 5, 5, interleaved=True),
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 96,
            "norm_topk_prob": True,
        },
        {**_NEW_VISION, "deepstack_visual_indexes": [0]},
    ),
    "qwen3_5": _qwen(
        "qwen3_5",
        {
            "rope_parameters": _rope(4, 2, 2, interleaved=True, partial_rotary_factor=0.5),
            "layer_types": ["linear_attention", "full_attention"],
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 64,
            "linear_value_head_dim": 64,
        },
        _NEW_VISION,
    ),
    "glm4v": _glm,
    "internvl": _intern,
}
NAMES = tuple(_CONFIGS)


def build(folder: Path, name: str, *, seed: int) -> Path:
    """Writes the model of `NAMES` to `folder`."""
    tokens = {"glm4v": _GLM_TOKENS, "internvl": _INTERN_TOKENS}.get(name, ())
    # What transformers makes of an InternVL's special tokens has names.
    named = dict(zip(("start_image_token", "end_image_token", "context_image_token", "video_token"), tokens, strict=False))
    tokenizer = _wrapped(
        tokenizer_with(tokens),
        words=name == "qwen3_5",
        eos_token=END_OF_TURN,
        pad_token=END_OF_TEXT,
        extra_special_tokens=named if name == "internvl" else list(tokens),
        model_max_length=4096,
        clean_up_tokenization_spaces=False,
    )
    settings = _CONFIGS[name](tokenizer)
    config = AutoConfig.for_model(**settings, tie_word_embeddings=False, dtype="float32")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForImageTextToText.from_config(config)
    ends = [tokenizer.convert_tokens_to_ids(token) for token in (END_OF_TURN, "<|user|>") if token in tokenizer.get_vocab()]
    model.generation_config = GenerationConfig(do_sample=True, eos_token_id=ends, pad_token_id=tokenizer.pad_token_id)
    model.save_pretrained(folder)
    _processor(name, tokenizer).save_pretrained(folder)
    _publish(folder)
    return folder


def _publish(folder: Path) -> None:
    """Writes the weights once more, as published files have them."""
    model = AutoModelForImageTextToText.from_pretrained(folder)
    keep_published_layout(model)
    write_weights(folder, stored_layers(model, gathered_layers(model, keeps=True)))
