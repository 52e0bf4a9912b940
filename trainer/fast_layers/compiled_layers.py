"""Compiles a model's repeated layers for the GPU: what lies between two matrix products becomes one kernel.

Layers that are alike share what was compiled, whatever a micro-batch's size; attention stays out of it. Like vLLM's own
compiled layers, they round to 16 bits behind such a kernel and not within it. Invariant: parameters stay the same, and layers
are compiled on all ranks of a job or on none.
`TORCH_COMPILE_DISABLE=1` leaves layers as they are, and so does a compiler that does not work (or is not there).
"""

from collections.abc import Callable
from typing import Any

import structlog
import torch
from torch import nn
from torch._dynamo import config as dynamo
from transformers.modeling_layers import GradientCheckpointingLayer

from trainer.engine.ranks import all_ranks

_INSTEAD = "they run as they are, slower"
_log = structlog.get_logger()

_DECIDES = ("GatedDeltaNet", "Experts")
"""Ends of names of modules whose computation depends on what is in a micro-batch."""


def compile_layers(model: nn.Module, *, backend: str | Callable[..., Any] = "inductor") -> int:
    """Has every repeated layer of `model` compiled when it is run first; returns how many there are.

    Args:
        backend: torch's name of it, or itself.
    """
    layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer) and not _decides(module)]
    # A layer that cannot be compiled runs as it is: in whatever thread or context, where a value that is set does not reach.
    dynamo._config["suppress_errors"].default = True  # type: ignore[attr-defined]
    for layer in layers:
        layer.compile(dynamic=True, backend=backend)
    return len(layers)


def all_compile() -> bool:
    """Whether every rank of the job `compiles`; called on all of them."""
    here = compiles()
    everywhere = all_ranks(here)
    if here and not everywhere:
        _log.warning("layers_not_compiled", reason="another rank cannot; its log says why", instead=_INSTEAD)
    return everywhere


def compiles() -> bool:
    """Whether there is a GPU that torch can compile for here; where it should but cannot, the log says why."""
    if not torch.cuda.is_available() or dynamo.disable:
        return False
    compiled: Any = torch.compile(torch.square)
    try:
        compiled(torch.ones(8, device="cuda"))
    except Exception as error:  # noqa: BLE001 - compilers fail in many ways, and training goes on without them
        _log.warning("layers_not_compiled", reason=str(error).partition("\n")[0] or repr(error), instead=_INSTEAD)
        return False
    return True


def _decides(layer: nn.Module) -> bool:
    return any(type(module).__name__.endswith(_DECIDES) for module in layer.modules())
