"""The optimizer's state of a model in training: each rank writes what it holds, and reads what it is going to hold.

Of every parameter a rank holds a stretch of its flattened values, or none. In the files each stretch stands under its place,
`exp_avg.<parameter>@<first value>`, so that any number of ranks, at any ZeRO stage, finds what it needs; no rank ever has more
than its share in memory.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors
import torch
import torch.distributed as dist
from torch import nn

from schemas.errors import CheckpointCorrupt
from trainer.model.layers import is_divided, trained_layers, trained_parameters
from trainer.model.tensor_files import TensorFiles

MOMENTS = ("exp_avg", "exp_avg_sq")
MASTER = "master"
"""More precise weights than the model's own, where training keeps such."""


@dataclass(frozen=True)
class Progress:
    """How far training has come; the same on every rank."""

    num_updates: int
    """Optimizer steps, over the whole run."""
    num_steps: int = 0
    """Those that the optimizer has counted: without what it left out because gradients were not finite."""
    loss_scale: tuple[float, ...] = ()
    """Of fp16; see `LossScale.state`."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """What a rank holds of one parameter."""

    start: int
    """Of the flattened parameter."""
    values: torch.Tensor
    """float32, (values,)."""
    keep: Callable[[], None]
    """Makes those values the rank's own, where they are a copy of them."""


def write_held(model: nn.Module, folder: Path, stem: str, *, rank: int, progress: Progress) -> None:
    """Writes what this rank holds of a model that DeepSpeed trains.

    Raises:
        OSError: it cannot be written.
    """
    files = TensorFiles(folder, f"{stem}-rank{rank:05d}")
    files.add({name: torch.tensor(value, dtype=torch.float64) for name, value in asdict(progress).items()})
    for layer in trained_layers(model):
        held = {(key, name): _held(parameter, key) for name, parameter in layer for key in _keys(parameter, progress)}
        files.add({f"{key}.{name}@{found.start}": found.values for (key, name), found in held.items() if found is not None})
    files.close()


def _keys(parameter: nn.Parameter, progress: Progress) -> list[str]:
    # The optimizer allocates its state in its first step, which may be later than the run's.
    return [*([MASTER] if parameter.dtype != torch.float32 else []), *(MOMENTS if progress.num_steps else ())]


def _held(parameter: nn.Parameter, key: str) -> Stretch | None:
    of: Any = parameter
    name = None if key == MASTER else key
    if not is_divided(parameter):
        mapping = of._hp_mapping
        return mapping and Stretch(mapping.lp_fragment_address.start, mapping.get_hp_fragment(name).detach(), lambda: None)
    values = of._z3_optimizer.get_local_fp32_param(parameter, name).detach()
    start = dist.get_rank(of.ds_process_group) * len(values)
    # The last ranks' are padded.
    num_held = min(len(values), int(of.ds_numel) - start)
    if num_held <= 0:
        return None
    return Stretch(start, values[:num_held], lambda: of._z3_optimizer.set_local_hp_param(values, parameter, name))


@dataclass(frozen=True, eq=False)
class SavedState:
    """What all ranks wrote of one model, opened: values are read where they are asked for."""

    progress: Progress
    stretches: dict[str, list[tuple[int, Any]]]
    """By key and parameter: the first value's place, and what reads from there."""

    def fill(self, key: str, name: str, held: Stretch) -> None:
        """Puts the saved values into a stretch.

        Raises:
            KeyError: not all of them were saved.
        """
        end, num_filled = held.start + len(held.values), 0
        for start, saved in self.stretches.get(f"{key}.{name}", ()):
            first, last = max(start, held.start), min(start + saved.get_shape()[0], end)
            if first < last:
                held.values[first - held.start : last - held.start].copy_(saved[first - start : last - start])
                num_filled += last - first
        if num_filled != len(held.values):
            raise KeyError(f"{key}.{name}")


@contextmanager
def open_saved(folder: Path, stem: str) -> Iterator[SavedState]:
    """Raises `CheckpointCorrupt`: never written, or damaged."""
    files = sorted(folder.glob(f"{stem}-rank*.safetensors"))
    if not files:
        raise CheckpointCorrupt(f"{folder} has no {stem}-rank*.safetensors: it was written without, or files are gone")
    stretches = defaultdict[str, list[tuple[int, Any]]](list)
    counts: dict[str, Any] = {}
    with ExitStack() as stack:
        for file in files:
            try:
                opened = stack.enter_context(safetensors.safe_open(file, framework="pt"))
                for key in opened.keys():  # noqa: SIM118 - it is no dictionary
                    name, place, start = key.rpartition("@")
                    if place:
                        stretches[name].append((int(start), opened.get_slice(key)))
                    else:
                        counts[key] = opened.get_tensor(key).tolist()
            except (OSError, ValueError, safetensors.SafetensorError) as error:
                raise CheckpointCorrupt(f"{file} cannot be read: {error}") from error
        try:
            progress = Progress(int(counts["num_updates"]), int(counts["num_steps"]), tuple(counts["loss_scale"]))
        except (KeyError, TypeError) as error:
            raise CheckpointCorrupt(f"{files[0]} does not say after how many updates it was written: {error}") from error
        yield SavedState(progress, dict(stretches))


def restore_held(model: nn.Module, saved: SavedState, *, is_own: bool) -> None:
    """Puts a saved state in place of what this rank holds; DeepSpeed must have made one step, so that there is a place.

    Args:
        is_own: it is that of the very weights in the model; those of later ones are more precise than what it keeps of its.

    Raises:
        KeyError: a value is missing: the state belongs to another model or precision.
    """
    for name, parameter in trained_parameters(model):
        keys = [*([MASTER] if is_own and parameter.dtype != torch.float32 else []), *MOMENTS]
        for key in keys:
            held = _held(parameter, key)
            if held is not None:
                saved.fill(key, name, held)
                held.keep()
