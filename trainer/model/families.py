"""Which family a model belongs to."""

from typing import Any, Final

from schemas.errors import ConfigurationError
from trainer.model.family import Family
from trainer.model.grid_family import GridFamily
from trainer.model.tile_family import TileFamily

_GRIDS: Final = ("glm4v", "qwen2_5_vl", "qwen3_5", "qwen3_vl", "qwen3_vl_moe")
_TILES: Final = ("internvl",)
_LAYERS: Final = frozenset({"full_attention", "linear_attention"})
"""Kinds of layers of a language model that several sequences in a row are kept apart in."""


def family_of(config: Any) -> Family:
    """Of a model, by its configuration as transformers reads it.

    Raises:
        ConfigurationError: nothing here can train such a model.
    """
    kind = config.model_type
    if kind not in (*_GRIDS, *_TILES):
        known = ", ".join(sorted((*_GRIDS, *_TILES)))
        raise ConfigurationError(
            f"a model of type {kind!r} cannot be trained here: policy_config.base_model must be one of {known} "
            "(model_type in its config.json)"
        )
    layers = set(getattr(config.text_config, "layer_types", None) or ())
    if strange := sorted(layers - _LAYERS):
        raise ConfigurationError(f"a model with {' and '.join(strange)} layers cannot be trained here")
    return GridFamily(config) if kind in _GRIDS else TileFamily(config)
