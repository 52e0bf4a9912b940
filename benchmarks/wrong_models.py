"""Ways in which a policy's weights are not those that the trainer holds: each writes the folder that the policy loads."""

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load_file, save_file

Weights = dict[str, torch.Tensor]
_FILE = "model.safetensors"
_LAYER = re.compile(r"language_model\.layers\.(\d+)\.")
_EMBEDDING, _HEAD = "model.language_model.embed_tokens.weight", "lm_head.weight"
_NUM_SPECIAL = 7
"""First tokens of the vocabulary, which every tokenizer of the family has."""


def other_tokenizer(weights: Weights) -> Weights:
    """The rows of another tokenizer's tokens."""
    size = len(weights[_HEAD])
    order = torch.cat([torch.arange(_NUM_SPECIAL), _NUM_SPECIAL + torch.randperm(size - _NUM_SPECIAL, generator=_generator())])
    return weights | {name: weights[name][order] for name in (_EMBEDDING, _HEAD)}


def without_first_layer(weights: Weights) -> Weights:
    return _without(weights, 0)


def without_last_layer(weights: Weights) -> Weights:
    return _without(weights, max(int(found[1]) for name in weights if (found := _LAYER.search(name))))


def keys_for_values(weights: Weights) -> Weights:
    """Two projections put in each other's place, as a loader that splits a fused one wrongly does."""
    return {
        name: weights[name.replace("k_proj", "?").replace("v_proj", "k_proj").replace("?", "v_proj")]
        if _LAYER.search(name)
        else weight
        for name, weight in weights.items()
    }


def coarse(weights: Weights) -> Weights:
    """Rounded to eight values a matrix: a quantisation that went wrong."""
    return {
        name: _rounded(weight) if weight.dim() == 2 and _LAYER.search(name) else weight for name, weight in weights.items()
    }


CHANGES: Final[Mapping[str, Callable[[Weights], Weights]]] = {
    "another tokenizer": other_tokenizer,
    "first layer dropped": without_first_layer,
    "last layer dropped": without_last_layer,
    "keys and values exchanged": keys_for_values,
    "quantised to three bits": coarse,
}
"""Of one folder's weights."""


def changed(folder: Path, into: Path, change: Callable[[Weights], Weights]) -> Path:
    """A copy of a model's folder with other weights."""
    shutil.copytree(folder, into)
    save_file({name: each.contiguous() for name, each in change(load_file(folder / _FILE)).items()}, into / _FILE)
    return into


def with_head_of(folder: Path, into: Path, older: Path) -> Path:
    """As after reloads that kept the output weights."""
    head = load_file(older / _FILE)[_HEAD]
    return changed(folder, into, lambda weights: weights | {_HEAD: head})


def _without(weights: Weights, layer: int) -> Weights:
    """A residual layer that adds nothing is none."""
    outputs = (f"language_model.layers.{layer}.self_attn.o_proj.", f"language_model.layers.{layer}.mlp.down_proj.")
    return {
        name: torch.zeros_like(weight) if any(each in name for each in outputs) else weight for name, weight in weights.items()
    }


def _rounded(weight: torch.Tensor) -> torch.Tensor:
    unit = weight.abs().amax() / 3.5
    return ((weight / unit - 0.5).round() + 0.5) * unit


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
