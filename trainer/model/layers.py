"""The parameters that are trained, a layer at a time: as much of a model as has to be whole in one place."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby

import torch
from torch import nn

from trainer.engine.deepspeed_module import import_deepspeed

Named = tuple[str, nn.Parameter]
Layer = dict[str, torch.Tensor]
"""Weights by parameter name."""


def trained_parameters(model: nn.Module) -> Iterator[Named]:
    """All of them, or those of the adapters."""
    return ((name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad)


def trained_layers(model: nn.Module) -> Iterator[list[Named]]:
    """The same by layer; what belongs to none, by module."""
    return _by_layer(trained_parameters(model))


def _by_layer(parameters: Iterable[Named]) -> Iterator[list[Named]]:
    return (list(layer) for _, layer in groupby(parameters, key=lambda named: _layer(named[0])))


def _layer(name: str) -> list[str]:
    """`model.layers.3` of whatever is in it."""
    parts = name.split(".")
    number = next((index for index, part in enumerate(parts) if part.isdigit()), len(parts) - 2)
    return parts[: number + 1]


def is_divided(parameter: nn.Parameter) -> bool:
    """By ZeRO-3: no rank holds all of it."""
    return hasattr(parameter, "ds_id")


def without_values(parameter: nn.Parameter) -> torch.Tensor:
    """A tensor of the parameter's shape and precision, that takes no memory."""
    return torch.empty(getattr(parameter, "ds_shape", parameter.shape), dtype=parameter.dtype, device="meta")


def gathered_layers(model: nn.Module, *, keeps: bool, frozen: bool = False) -> Iterator[Layer]:
    """The trained weights, layer by layer, on the CPU. Every rank goes through all of them.

    Args:
        keeps: whether this rank gets them; the others get empty layers.
        frozen: whether those that are not trained come too, in their places.
    """
    for layer in _by_layer(model.named_parameters()) if frozen else trained_layers(model):
        with whole(layer):
            copies = {name: weight.detach().to("cpu", copy=is_divided(weight)) for name, weight in layer} if keeps else {}
        yield copies


def whole(layer: Sequence[Named], *, changed: bool = False) -> AbstractContextManager[None]:
    """Within it every rank has all of the layer. Every rank takes part.

    Args:
        changed: what rank 0 puts there is every rank's afterwards.
    """
    divided = [parameter for _, parameter in layer if is_divided(parameter)]
    if not divided:
        return nullcontext()
    gathered: AbstractContextManager[None] = import_deepspeed().zero.GatheredParameters(
        divided, modifier_rank=0 if changed else None
    )
    return gathered
