"""The critic: the policy's architecture with one number in place of the vocabulary, begun from the base model."""

from pathlib import Path

import torch
from torch import nn

from trainer.engine.deepspeed_config import DeepSpeedConfig
from trainer.model.batches import Batch
from trainer.model.loading import load_model
from trainer.model.model_inputs import model_inputs
from trainer.model.saved_weights import load_weights

CRITIC = "critic"
"""Stem of its weights' files in a version's `trainer/`."""


class ValueModel(nn.Module):
    """Answers with the value before each completion token: from the hidden state that predicts it, float32, (N,)."""

    def __init__(self, body: nn.Module, width: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Linear(width, 1, dtype=dtype)
        # An untrained critic says 0 everywhere, on every rank and after every restart.
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, batch: Batch) -> torch.Tensor:
        outputs = self.body(**model_inputs(self.body, batch))
        hidden = outputs.last_hidden_state[0, batch.columns]
        values: torch.Tensor = self.head(hidden).float()[:, 0]
        return values


def load_critic(folder: Path, deepspeed: DeepSpeedConfig, saved: Path | None) -> ValueModel:
    """A critic of the architecture in `folder`: begun from the weights there, or with those in the folder `saved`.

    Raises:
        CheckpointCorrupt: there are none, or they are another model's.
    """
    model = load_model(folder, deepspeed)
    critic = ValueModel(model.model, int(model.config.text_config.hidden_size), model.dtype)
    if saved is not None:
        load_weights(critic, saved, CRITIC)
    return critic
