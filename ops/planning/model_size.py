"""How large a model is: parameters counted in a model of its configuration that has no memory, and the sizes that count."""

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForImageTextToText

from agents.image_tokens import ImageTokens, ScaledGrid, Tiles
from schemas.errors import ConfigurationError
from schemas.messages import Screenshot
from trainer.engine.throughput import EXPERTS, ModelCost, expert_share
from trainer.model.frozen import part_of
from trainer.model.supported import GRIDS, TILES

_MOST_TILES = 12
"""InternVL's processors make as many of one screenshot unless their settings say otherwise."""


@dataclass(frozen=True)
class ModelSize:
    num_parameters: int
    largest_layer: int
    """Parameters of the largest module that ZeRO-3 gathers at once: the largest one without parts, or one layer."""
    num_layers: int
    attending_layers: int
    """Those that keep keys and values of every token; the others keep a state of each sequence, however long it is."""
    state_bytes: int
    """Of all states of one sequence."""
    hidden: int
    intermediate: int
    query: int
    """Heads times their width."""
    key_value: int
    """Key-value heads times their width."""
    key_value_heads: int
    vocabulary: int
    dtype_bytes: int
    """Of one parameter, as the model is stored."""
    vision_layers: int = 0
    vision_hidden: int = 0
    expert_parameters: int = 0
    """Of all experts that a token is sent to some of."""
    expert_share: float = 1.0
    """Of them, that it is sent to."""
    token_flops: float = 0.0
    """Of a forward pass, what one token takes in all layers; of experts, in those that it is sent to."""
    squared_flops: float = 0.0
    """The same of a sequence, times the square of its length: a token attends to those before it."""
    patch_flops: float = 0.0
    """Of a forward pass, what one patch of a screenshot takes; 0: nobody counts it for this kind of model."""
    frame_flops: float = 0.0
    """The same of a screenshot, times the square of its patches: they attend to each other."""
    patches_a_token: int = 1
    """A square number: so many are merged."""
    image_tokens: ImageTokens | None = None
    """By config.json alone: where its processor's settings scale a screenshot, or allow other tiles, it has others."""
    parts: Mapping[str, int] = field(default_factory=dict)
    """Parameters of those that `trainer_config.freeze` knows."""
    linear: Mapping[str, int] = field(default_factory=dict)
    """Inputs and outputs of all linear layers of one name, added up: an adapter has so many parameters a rank."""

    def screenshot_tokens(self, width: int, height: int) -> int:
        """Of one screenshot in a prompt."""
        if self.image_tokens is None:
            return 0
        return self.image_tokens.count(Screenshot(data=b"", media_type="image/png", width=width, height=height))

    def patches(self, width: int, height: int) -> int:
        return self.screenshot_tokens(width, height) * self.patches_a_token


def model_size(folder: Path) -> ModelSize:
    """Reads config.json alone.

    Raises:
        ConfigurationError: transformers knows no model of this kind that sees.
    """
    try:
        config = AutoConfig.from_pretrained(folder)
        with torch.device("meta"):
            model = AutoModelForImageTextToText.from_config(config)
    except (ValueError, OSError, KeyError) as error:
        raise ConfigurationError(f"{folder} is no model that transformers knows as one that sees: {error}") from error
    return _measured(config, model)


def _measured(config: Any, model: Any) -> ModelSize:
    text, vision = config.get_text_config(), getattr(config, "vision_config", None)
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    stored = config.dtype or text.dtype or torch.bfloat16
    key_value_heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    cost = ModelCost.counted(config, model.model) if config.model_type in (*GRIDS, *TILES) else None
    query, key_value = text.num_attention_heads * width, key_value_heads * width
    intermediate = getattr(text, "intermediate_size", None) or 4 * text.hidden_size
    layer = text.hidden_size * (2 * query + 2 * key_value + 3 * intermediate)
    return ModelSize(
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        largest_layer=max(_together(model)),
        num_layers=text.num_hidden_layers,
        attending_layers=text.num_hidden_layers - _recurrent(text),
        state_bytes=_recurrent(text) * _state_bytes(text, stored) if _recurrent(text) else 0,
        hidden=text.hidden_size,
        intermediate=intermediate,
        query=query,
        key_value=key_value,
        key_value_heads=key_value_heads,
        vocabulary=text.vocab_size,
        dtype_bytes=stored.itemsize,
        vision_layers=_first(vision, "depth", "num_hidden_layers"),
        vision_hidden=_first(vision, "hidden_size", "embed_dim"),
        expert_parameters=sum(each.numel() for name, each in model.named_parameters() if EXPERTS in name),
        expert_share=expert_share(text),
        token_flops=cost.a_token if cost else 2.0 * layer * text.num_hidden_layers,
        squared_flops=cost.a_squared_length if cost else 2.0 * query * text.num_hidden_layers,
        patch_flops=cost.a_patch if cost else 0.0,
        frame_flops=cost.a_squared_frame if cost else 0.0,
        **_seen(config, vision),
        parts=_parts(model),
        linear=_linear(model),
    )


def _recurrent(text: Any) -> int:
    """Layers."""
    return list(getattr(text, "layer_types", None) or ()).count("linear_attention")


def _state_bytes(text: Any, stored: torch.dtype) -> int:
    """Of a layer with a gated delta rule, as vLLM holds it: what its convolution still sees, and a matrix a head."""
    keys = text.linear_num_key_heads * text.linear_key_head_dim
    values = text.linear_num_value_heads * text.linear_value_head_dim
    of_head = getattr(torch, getattr(text, "mamba_ssm_dtype", None) or "", stored)
    convolved = (2 * keys + values) * (text.linear_conv_kernel_dim - 1)
    return int(convolved * stored.itemsize + values * text.linear_key_head_dim * of_head.itemsize)


def _seen(config: Any, vision: Any) -> dict[str, Any]:
    """How a screenshot becomes tokens."""
    if config.model_type in TILES:
        side, patch = int(vision.image_size[0]), int(vision.patch_size[0])
        merged = round(1 / config.downsample_ratio) ** 2
        tile = Tiles(side=side, min_tiles=1, max_tiles=_MOST_TILES, tokens=(side // patch) ** 2 // merged)
        return {"patches_a_token": merged, "image_tokens": tile}
    side, merge = _first(vision, "patch_size"), _first(vision, "spatial_merge_size") or 1
    grid = ScaledGrid(cell=side * merge, min_pixels=0, max_pixels=sys.maxsize) if side else None
    return {"patches_a_token": merge**2, "image_tokens": grid}


def _parts(model: torch.nn.Module) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        found[part_of(name)] += parameter.numel()
    return found


def _linear(model: torch.nn.Module) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            found[name.rpartition(".")[2]] += module.in_features + module.out_features
    return found


def _together(model: torch.nn.Module) -> list[int]:
    """Parameters of each layer, and of each module that is none and has no parts."""
    sizes = [0]
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList):
            sizes += [sum(parameter.numel() for parameter in layer.parameters()) for layer in module]
        sizes.append(sum(parameter.numel() for parameter in module.parameters(recurse=False)))
    return sizes


def _first(config: Any, *names: str) -> int:
    return next((int(getattr(config, name)) for name in names if isinstance(getattr(config, name, None), int)), 0)
