"""The state of models in training as plain tensors, equal for every ZeRO stage and number of ranks."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import safetensors.torch
import torch
from huggingface_hub import split_torch_state_dict_into_shards
from torch import nn

from schemas.errors import CheckpointCorrupt
from trainer.model.adapters import AdapterFiles

_MOMENTS = ("exp_avg", "exp_avg_sq")
_MASTER = "master"
_WEIGHT = "weight"
_OPTIMIZER = "trainer/optimizer.safetensors"
_CRITIC = "trainer/critic.safetensors"
_NUM_UPDATES = "num_updates"


@dataclass(frozen=True, eq=False)
class ModelState:
    """Full tensors on the CPU, by parameter name."""

    num_updates: int
    weights: dict[str, torch.Tensor]
    """In the model's own precision."""
    optimizer: dict[str, torch.Tensor]
    """`exp_avg.<name>`, `exp_avg_sq.<name>`, and `master.<name>` where training keeps more precise weights."""


@dataclass(frozen=True, eq=False)
class EngineState:
    policy: ModelState
    critic: ModelState | None = None
    adapters: AdapterFiles | None = None
    """Where the policy's weights are those of adapters only."""
    whole: bool = True
    """Training can go on from it; otherwise it is the policy's weights alone."""

    def write(self, folder: Path) -> None:
        """Writes the policy where transformers and vLLM look for it, and of a whole state what training needs beside it."""
        if self.adapters is None:
            write_weights(folder, self.policy.weights)
        else:
            self.adapters.write(folder, self.policy.weights)
        if not self.whole:
            return
        _save(folder / _OPTIMIZER, self.policy.num_updates, self.policy.optimizer)
        if self.critic is not None:
            weights = {f"{_WEIGHT}.{name}": tensor for name, tensor in self.critic.weights.items()}
            _save(folder / _CRITIC, self.critic.num_updates, weights | self.critic.optimizer)


def write_weights(folder: Path, weights: dict[str, torch.Tensor]) -> None:
    """Writes a model's weights as transformers and vLLM read them."""
    plan = split_torch_state_dict_into_shards(weights, filename_pattern="model{suffix}.safetensors", max_shard_size="5GB")
    for name, tensors in plan.filename_to_tensors.items():
        part = {tensor: weights[tensor].contiguous() for tensor in tensors}
        safetensors.torch.save_file(part, folder / name, metadata={"format": "pt"})
    if plan.is_sharded:
        index = {"metadata": plan.metadata, "weight_map": plan.tensor_to_filename}
        (folder / "model.safetensors.index.json").write_bytes(msgspec.json.encode(index))


def _save(file: Path, num_updates: int, tensors: dict[str, torch.Tensor]) -> None:
    safetensors.torch.save_file({**tensors, _NUM_UPDATES: torch.tensor(num_updates)}, file)


def read_optimizer_state(folder: Path) -> ModelState:
    """The policy's optimizer; its weights are loaded as any model's. Raises `CheckpointCorrupt`."""
    num_updates, tensors = _load(folder / _OPTIMIZER)
    return ModelState(num_updates, {}, tensors)


def read_critic_state(folder: Path) -> ModelState:
    """The critic with its optimizer. Raises `CheckpointCorrupt`: written without one, or damaged."""
    num_updates, tensors = _load(folder / _CRITIC)
    prefix = f"{_WEIGHT}."
    weights = {name.removeprefix(prefix): tensors.pop(name) for name in list(tensors) if name.startswith(prefix)}
    return ModelState(num_updates, weights, tensors)


def _load(file: Path) -> tuple[int, dict[str, torch.Tensor]]:
    try:
        tensors = safetensors.torch.load_file(file)
        return int(tensors.pop(_NUM_UPDATES)), tensors
    except (OSError, KeyError, safetensors.SafetensorError) as error:
        raise CheckpointCorrupt(f"{file} cannot be read: {error}") from error


def trained_parameters(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """All of them, or those of the adapters."""
    return ((name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad)


def read_state(model: nn.Module, num_updates: int, *, whole: bool, keeps: bool) -> ModelState:
    """Gathers the state of a model that DeepSpeed trains; every rank takes part.

    Args:
        whole: the optimizer's too.
        keeps: whether this rank gets it; the others have nothing of it, and no memory for it.
    """
    from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_optimizer_state

    weights: dict[str, torch.Tensor] = {}
    optimizer: dict[str, torch.Tensor] = {}

    def take(into: dict[str, torch.Tensor], name: str, tensor: torch.Tensor) -> None:
        if keeps:
            into[name] = tensor.to("cpu", copy=True)

    for name, parameter in trained_parameters(model):
        if not whole and not _is_divided(parameter):
            take(weights, name, parameter.detach())
            continue
        master = safe_get_full_fp32_param(parameter)
        take(weights, name, master.to(parameter.dtype))
        if whole and parameter.dtype != torch.float32:
            take(optimizer, f"{_MASTER}.{name}", master)
        # The optimizer allocates its state in its first step.
        for key in _MOMENTS if whole and num_updates else ():
            take(optimizer, f"{key}.{name}", safe_get_full_optimizer_state(parameter, key))
    return ModelState(num_updates, weights, optimizer)


def _is_divided(parameter: nn.Parameter) -> bool:
    """By ZeRO-3: no rank holds all of it."""
    return hasattr(parameter, "ds_id")


def restore_state(engine: Any, model: nn.Module, saved: ModelState, *, is_own: bool) -> None:
    """Puts a saved optimizer state in place; the engine must have made one step, so that there is a place.

    Args:
        is_own: it is that of the very weights in the model; those of later ones are more precise than what it keeps of its.

    Raises:
        KeyError: a tensor is missing: the state belongs to another model or precision.
    """
    from deepspeed.utils import safe_set_full_fp32_param, safe_set_full_optimizer_state

    for name, parameter in trained_parameters(model):
        if is_own and parameter.dtype != torch.float32:
            safe_set_full_fp32_param(parameter, saved.optimizer[f"{_MASTER}.{name}"].to(parameter.device))
        for key in _MOMENTS:
            safe_set_full_optimizer_state(parameter, saved.optimizer[f"{key}.{name}"].to(parameter.device), key)
    for entry in engine.optimizer.optimizer.state.values():
        entry["step"].fill_(float(saved.num_updates))
