"""Weights as published files have them, which transformers may name and lay out otherwise in memory."""

from collections.abc import Iterable, Iterator
from copy import deepcopy

from transformers import PreTrainedModel
from transformers.core_model_loading import Transpose, revert_weight_conversion

from trainer.model.layers import Layer


def keep_published_layout(model: PreTrainedModel) -> None:
    """Makes `stored_layers` of a model that was just loaded independent of the shapes that its parameters have.

    transformers reads experts turned or not, by their shape, and writes them as they are; vLLM reads them turned alone, as
    they are published. Under ZeRO-3 there is no shape to go by.
    """
    conversions = deepcopy(model._weight_conversions or [])
    for operation in (each for conversion in conversions for each in getattr(conversion, "operations", ())):
        if isinstance(operation, Transpose):
            operation.check_dims = False
    model._weight_conversions = conversions


def stored_layers(model: PreTrainedModel, layers: Iterable[Layer]) -> Iterator[Layer]:
    """What transformers and vLLM load, from parameters by their names in `model`: those of a layer go together."""
    return (revert_weight_conversion(model, layer) for layer in layers)
