"""Weights of a version's own files, put into a model that is about to be trained on."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from schemas.errors import CheckpointCorrupt
from trainer.model.layers import trained_parameters, whole, without_values
from trainer.model.tensor_files import read_tensors


def load_weights(model: nn.Module, folder: Path, stem: str, named: Callable[[str], str] = lambda name: name) -> None:
    """Gives the trained parameters the values in `<stem>.safetensors`, or in as many files as there are.

    Args:
        named: a parameter's name in the files.

    Raises:
        CheckpointCorrupt: they are gone, damaged, or another model's.
    """
    places = {named(name): parameter for name, parameter in trained_parameters(model)}
    for name, saved in read_tensors(folder, stem):
        place = places.pop(name, None)
        if place is None or without_values(place).shape != saved.shape:
            raise CheckpointCorrupt(f"{folder}/{stem} is another model's: it holds {name}, which this one has no place for")
        with whole([(name, place)], changed=True), torch.no_grad():
            place.copy_(saved)
    if places:
        raise CheckpointCorrupt(f"{folder}/{stem} is another model's: it lacks {next(iter(places))}")
