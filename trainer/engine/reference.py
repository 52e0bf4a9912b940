"""The frozen reference that divergences are measured from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from trainer.engine.deepspeed_config import DeepSpeedConfig
from trainer.engine.deepspeed_engine import initialize
from trainer.engine.ranks import Ranks
from trainer.model.adapters import without_adapters
from trainer.model.batches import Batch
from trainer.model.loading import load_model
from trainer.model.logprobs import CompletionModel
from trainer.model.model_folder import suppressed_tokens
from trainer.token_losses import Outputs
from trainer.truncation import Truncation


class Reference(Protocol):
    def __call__(self, batch: Batch, truncation: Truncation) -> Outputs: ...


class FrozenModel:
    """A model of its own. Each rank holds it whole, or under ZeRO-3 its part, on the host where parameters are offloaded."""

    def __init__(self, folder: Path, *, deepspeed: DeepSpeedConfig, ranks: Ranks) -> None:
        model = load_model(folder, deepspeed).requires_grad_(False)
        module: Any = CompletionModel(model, suppressed_tokens(folder)).eval()
        self._module = initialize(module, None, deepspeed.frozen(), ranks) if deepspeed.stage == 3 else module.to(ranks.device)

    @torch.no_grad()
    def __call__(self, batch: Batch, truncation: Truncation) -> Outputs:
        outputs: Outputs = self._module(batch, truncation)
        return outputs


class AdaptersOff:
    """The policy without its adapters: the model that they were begun on, at no further memory."""

    def __init__(self, model: nn.Module, forward: Callable[[Batch, Truncation], Any]) -> None:
        self._model = model
        self._forward = forward

    def __call__(self, batch: Batch, truncation: Truncation) -> Outputs:
        with without_adapters(self._model):
            outputs: Outputs = self._forward(batch, truncation)
        return outputs
