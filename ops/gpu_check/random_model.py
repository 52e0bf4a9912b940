"""Qwen3-VL of published shapes with random weights, for machines that no hub can be reached from."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import torch
from transformers import AutoConfig, Qwen3VLForConditionalGeneration

from ops.gpu_check.drawn_pages import build_model
from ops.quickstart.tiny_model import TinyShape

_SMALL = {"depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "deepstack_visual_indexes": [5, 11, 17]}
_LARGE = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "deepstack_visual_indexes": [8, 16, 24]}
_ROPE = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20], "mrope_interleaved": True}
"""Written out: without sections transformers takes these, and vLLM positions in one dimension."""
_PIXELS = 1 << 21
"""More than any screenshot has: none is scaled."""
SHAPES: Final[Mapping[str, tuple[dict[str, object], dict[str, object]]]] = {
    "2B": ({"hidden_size": 2048, "num_hidden_layers": 28, "num_attention_heads": 16, "intermediate_size": 6144}, _SMALL),
    "4B": ({"hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 32, "intermediate_size": 9728}, _SMALL),
    "8B": ({"hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "intermediate_size": 12288}, _LARGE),
}
"""What language model and vision tower differ in."""


def describe_model(folder: Path, name: str) -> Path:
    """Writes a model's config.json alone, as it is published."""
    text, vision = SHAPES[name]
    tied = name != "8B"
    config = {
        "model_type": "qwen3_vl",
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "dtype": "bfloat16",
        "tie_word_embeddings": tied,
        "text_config": {
            **text,
            "model_type": "qwen3_vl_text",
            "num_key_value_heads": 8,
            "head_dim": 128,
            "max_position_embeddings": 262144,
            "rope_parameters": _ROPE,
            "vocab_size": 151936,
            "tie_word_embeddings": tied,
        },
        "vision_config": {
            **vision,
            "model_type": "qwen3_vl",
            "num_heads": 16,
            "out_hidden_size": text["hidden_size"],
            "patch_size": 16,
            "spatial_merge_size": 2,
        },
    }
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def random_model(folder: Path, name: str) -> Path:
    """Writes a whole model folder; its tokenizer knows the drawn pages' sentences.

    Args:
        name: of `SHAPES`, whose weights are in bf16, or `tiny`: the quickstart's, in float32.
    """
    if name == "tiny":
        build_model(folder)
        return folder
    build_model(folder, shape=TinyShape(max_screenshot_pixels=_PIXELS))
    tiny = AutoConfig.from_pretrained(folder)
    config = AutoConfig.from_pretrained(describe_model(folder / "shape", name))
    for key in ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id"):
        setattr(config, key, getattr(tiny, key))
    for key in ("bos_token_id", "eos_token_id", "pad_token_id"):
        setattr(config.text_config, key, getattr(tiny.text_config, key))
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.bfloat16)
        with torch.device("cuda" if torch.cuda.is_available() else "cpu"):  # a minute sooner on a GPU
            model = Qwen3VLForConditionalGeneration(config)
    finally:
        torch.set_default_dtype(default)
    model.save_pretrained(folder)
    shutil.rmtree(folder / "shape")
    return folder
