"""The state of a DeepSpeed engine as plain tensors, equal for every ZeRO stage and number of ranks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import safetensors.torch
import torch
from huggingface_hub import split_torch_state_dict_into_shards
from torch import nn

from schemas.errors import CheckpointCorrupt
from trainer.adapters import AdapterFiles, adapters_of

_MOMENTS = ("exp_avg", "exp_avg_sq")
_MASTER = "master"
_OPTIMIZER = "trainer/optimizer.safetensors"
_NUM_UPDATES = "num_updates"


@dataclass(frozen=True, eq=False)
class EngineState:
    """Full tensors on the CPU, by parameter name."""

    num_updates: int
    weights: dict[str, torch.Tensor]
    """In the model's own precision: what policies load."""
    optimizer: dict[str, torch.Tensor]
    """`exp_avg.<name>`, `exp_avg_sq.<name>`, and `master.<name>` where training keeps more precise weights."""
    adapters: AdapterFiles | None = None
    """Where the weights are those of adapters only."""

    def write(self, folder: Path) -> None:
        """Writes the weights where transformers and vLLM look for them, and the optimizer beside them."""
        if self.adapters is None:
            write_weights(folder, self.weights)
        else:
            self.adapters.write(folder, self.weights)
        counted = {**self.optimizer, _NUM_UPDATES: torch.tensor(self.num_updates)}
        safetensors.torch.save_file(counted, folder / _OPTIMIZER)


def write_weights(folder: Path, weights: dict[str, torch.Tensor]) -> None:
    """Writes a model's weights as transformers and vLLM read them."""
    plan = split_torch_state_dict_into_shards(weights, filename_pattern="model{suffix}.safetensors", max_shard_size="5GB")
    for name, tensors in plan.filename_to_tensors.items():
        part = {tensor: weights[tensor].contiguous() for tensor in tensors}
        safetensors.torch.save_file(part, folder / name, metadata={"format": "pt"})
    if plan.is_sharded:
        index = {"metadata": plan.metadata, "weight_map": plan.tensor_to_filename}
        (folder / "model.safetensors.index.json").write_bytes(msgspec.json.encode(index))


def read_optimizer_state(folder: Path) -> tuple[dict[str, torch.Tensor], int]:
    """The optimizer's tensors and its number of updates. Raises `CheckpointCorrupt`."""
    try:
        tensors = safetensors.torch.load_file(folder / _OPTIMIZER)
        return tensors, int(tensors.pop(_NUM_UPDATES))
    except (OSError, KeyError, safetensors.SafetensorError) as error:
        raise CheckpointCorrupt(f"{folder / _OPTIMIZER} cannot be read: {error}") from error


def trained_parameters(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """All of them, or those of the adapters."""
    return ((name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad)


def read_state(engine: Any, model: nn.Module, num_updates: int) -> EngineState:
    """Gathers the state; every rank takes part, and the result is complete on each."""
    from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_optimizer_state

    weights: dict[str, torch.Tensor] = {}
    optimizer: dict[str, torch.Tensor] = {}
    for name, parameter in trained_parameters(model):
        master = safe_get_full_fp32_param(parameter).cpu()
        weights[name] = master.to(parameter.dtype)
        if parameter.dtype != torch.float32:
            optimizer[f"{_MASTER}.{name}"] = master
        # The optimizer allocates its state in its first step.
        for key in _MOMENTS if num_updates else ():
            optimizer[f"{key}.{name}"] = safe_get_full_optimizer_state(parameter, key).cpu()
    return EngineState(num_updates, weights, optimizer, adapters_of(model))


def restore_state(engine: Any, model: nn.Module, optimizer: Mapping[str, torch.Tensor], num_updates: int) -> None:
    """Puts a saved optimizer state in place; the engine must have made one step, so that there is a place.

    Raises:
        KeyError: a tensor is missing: the state belongs to another model or precision.
    """
    from deepspeed.utils import safe_set_full_fp32_param, safe_set_full_optimizer_state

    for name, parameter in trained_parameters(model):
        if parameter.dtype != torch.float32:
            safe_set_full_fp32_param(parameter, optimizer[f"{_MASTER}.{name}"].to(parameter.device))
        for key in _MOMENTS:
            safe_set_full_optimizer_state(parameter, optimizer[f"{key}.{name}"].to(parameter.device), key)
    for entry in engine.optimizer.optimizer.state.values():
        entry["step"].fill_(float(num_updates))
