"""A layer that lends its forward pass to its caller, who may use it as often as is needed.

Under ZeRO-3 all ranks fetch a layer's parameters together whenever it is called, so all have to call it equally often. What
happens within one call is each rank's own.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Forward = Callable[[torch.Tensor], torch.Tensor]


def lend(layer: nn.Module) -> None:
    """From now on `layer(inputs, use=use)` is `use(forward, inputs)`; without `use` it is as ever."""
    forward: Forward = layer.forward

    def lent(inputs: torch.Tensor, *, use: Callable[[Forward, torch.Tensor], Any] | None = None) -> Any:
        return forward(inputs) if use is None else use(forward, inputs)

    layer.forward = lent
