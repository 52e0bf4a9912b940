"""Which models can be trained here, by what their configuration says; loads without torch."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from schemas.errors import ConfigurationError

GRIDS: Final = ("glm4v", "qwen2_5_vl", "qwen3_5", "qwen3_vl", "qwen3_vl_moe")
"""See `grid_family`."""
TILES: Final = ("internvl",)
"""See `tile_family`."""
_LAYERS: Final = frozenset({"full_attention", "linear_attention"})
"""Kinds of layers of a language model that several sequences in a row are kept apart in."""


def require_supported(kind: str, layers: Iterable[str]) -> None:
    """
    Args:
        kind: `model_type` of a model's config.json.
        layers: the kinds of layers of its language model.

    Raises:
        ConfigurationError: nothing here can train such a model.
    """
    if kind not in (*GRIDS, *TILES):
        known = ", ".join(sorted((*GRIDS, *TILES)))
        raise ConfigurationError(
            f"a model of type {kind!r} cannot be trained here: policy_config.base_model must be one of {known} "
            "(model_type in its config.json)"
        )
    if strange := sorted(set(layers) - _LAYERS):
        raise ConfigurationError(f"a model with {' and '.join(strange)} layers cannot be trained here")


def require_trainable(folder: Path) -> None:
    """By the config.json there, as far as it says: kinds of layers that follow from other settings are met by the trainer.

    Raises:
        ConfigurationError: nothing here can train such a model; or that is no configuration of one.
    """
    try:
        described = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        kind, text = str(described.get("model_type", "")), described.get("text_config") or {}
        layers = tuple(text.get("layer_types") or ())
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigurationError(f"{folder / 'config.json'} cannot be read as a model's configuration: {error}") from error
    require_supported(kind, layers)
