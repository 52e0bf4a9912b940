"""Which family a model belongs to."""

from typing import Any

from trainer.model.family import Family
from trainer.model.grid_family import GridFamily
from trainer.model.supported import GRIDS, require_supported
from trainer.model.tile_family import TileFamily


def family_of(config: Any) -> Family:
    """Of a model, by its configuration as transformers reads it.

    Raises:
        ConfigurationError: nothing here can train such a model.
    """
    text = getattr(config, "text_config", None)
    require_supported(config.model_type, getattr(text, "layer_types", None) or ())
    return GridFamily(config) if config.model_type in GRIDS else TileFamily(config)
