"""LoRA adapters on a model whose own weights stay as they are, in peft's file format.

Invariant: the same configuration and seed give the same adapters and the same dropout, on every rank and after a restart.
"""

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from schemas.errors import ConfigurationError
from schemas.lora_config import LoraConfig
from trainer.model.adapter_folder import target_pattern
from trainer.model.layers import Layer, trained_parameters, without_values
from trainer.model.saved_weights import load_weights
from trainer.model.tensor_files import write_tensors

if TYPE_CHECKING:
    import peft

_STEM = "adapter_model"
_NAME = "default"
_PREFIX = "base_model.model."
"""Of every name in peft's files."""


def adapt(model: nn.Module, lora: LoraConfig, *, base: Path, seed: int) -> None:
    """Puts fresh adapters on the model, in place: only they are trained from now on, and at first they change nothing.

    Raises:
        ConfigurationError: peft is not installed, or the model has none of the layers.
    """
    try:
        import peft
    except ImportError as error:
        raise ConfigurationError(f"peft cannot be imported ({error}): install the extra trainer") from error
    config = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=target_pattern(lora),
        base_model_name_or_path=str(base.resolve()),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            peft.inject_adapter_in_model(config, model, _NAME)
        except ValueError as error:
            raise ConfigurationError(f"trainer_config.lora.targets fits no layer of {base}: {error}") from error


def load_adapters(model: nn.Module, folder: Path) -> None:
    """Gives the model's adapters the saved values. Raises `CheckpointCorrupt`."""
    load_weights(model, folder, _STEM, _name_in_file)


@dataclass(frozen=True, eq=False)
class AdapterFiles:
    """How a model's adapters are written to disk."""

    config: "peft.LoraConfig"

    def write(self, folder: Path, layers: Iterable[Layer]) -> None:
        """`layers`: those of the adapters, by the model's own parameter names."""
        self.config.save_pretrained(str(folder))
        write_tensors(folder, _STEM, ({_name_in_file(name): weight for name, weight in each.items()} for each in layers))


@dataclass(frozen=True, eq=False)
class FreshAdapters:
    """An `EngineFiles`: adapters begun anew as peft begins them. They change nothing yet."""

    files: AdapterFiles
    like: Mapping[str, torch.Tensor]
    """Those that there are, by name, without values."""
    seed: int

    @classmethod
    def of(cls, model: nn.Module, seed: int) -> "FreshAdapters":
        files = adapters_of(model)
        assert files is not None, "whole models are trained"
        return cls(files, {name: without_values(parameter) for name, parameter in trained_parameters(model)}, seed)

    def write(self, folder: Path) -> None:
        generator = torch.Generator().manual_seed(self.seed)
        self.files.write(folder, ({name: _begun(name, like, generator)} for name, like in self.like.items()))


def _begun(name: str, like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    fresh = torch.zeros(like.shape, dtype=like.dtype)
    return nn.init.kaiming_uniform_(fresh, a=math.sqrt(5), generator=generator) if ".lora_A." in name else fresh


def adapters_of(model: nn.Module) -> AdapterFiles | None:
    """None for a model without adapters."""
    configs = getattr(model, "peft_config", None)
    return AdapterFiles(configs[_NAME]) if configs else None


@contextmanager
def without_adapters(model: nn.Module) -> Iterator[None]:
    """Within it the model is its base: the reference that adapters are compared with. No backward pass in between."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    layers = [layer for layer in model.modules() if isinstance(layer, BaseTunerLayer)]
    assert layers, "the model has no adapters"
    for layer in layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)


@dataclass(frozen=True)
class DropoutSeeds:
    """What an optimizer step drops depends on its number, so that a resumed run drops the same."""

    lora: LoraConfig
    seed: int
    rank: int

    def begin(self, num_updates: int) -> None:
        """Called before the step that follows `num_updates` earlier ones."""
        if self.lora.active and self.lora.dropout > 0:
            torch.manual_seed(zlib.crc32(f"{self.seed}-{num_updates}-{self.rank}".encode()))


def _name_in_file(name: str) -> str:
    return _PREFIX + name.replace(f".{_NAME}.", ".")
