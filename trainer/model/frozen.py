"""Parts of a model that are not trained: the screenshot encoder, and what connects it to the language model."""

import re
from collections.abc import Collection
from pathlib import Path

from torch import nn

from schemas.errors import ConfigurationError

_PARTS = {
    "projector": re.compile(r"^model\.(multi_modal_projector|visual\.(merger|deepstack_merger_list|downsample))\."),
    "vision": re.compile(r"^model\.(visual|vision_tower)\."),
}
"""By `trainer_config.freeze`, as transformers names the parameters of every family; the first that fits counts."""


def freeze(model: nn.Module, parts: Collection[str], *, folder: Path) -> None:
    """Takes the parameters of these parts out of training, in place.

    Args:
        folder: of the model, for whoever is told.

    Raises:
        ConfigurationError: the model has no such part.
    """
    left = set(parts)
    for name, parameter in model.named_parameters():
        part = part_of(name)
        if part in parts:
            parameter.requires_grad_(False)
            left.discard(part)
    if left:
        raise ConfigurationError(f"trainer_config.freeze names {', '.join(sorted(left))}, and {folder} has none: leave it out")


def part_of(name: str) -> str:
    """The part that a parameter belongs to; empty: to none that can be frozen."""
    return next((part for part, names in _PARTS.items() if names.match(name)), "")
