"""What one optimizer step minimises, token by token: a policy loss, and what is added to it."""

from typing import Protocol

from schemas.training_config import ObjectiveConfig
from trainer.batches import Batch
from trainer.losses import Outputs, TokenLosses
from trainer.losses.behaviour_cloning import behaviour_cloning


class Objective(Protocol):
    """Loads with the engine, on every rank."""

    @property
    def needs_entropy(self) -> bool: ...

    def __call__(self, outputs: Outputs, batch: Batch) -> TokenLosses: ...


class PolicyObjective:
    """The loss that the configuration names."""

    def __init__(self, config: ObjectiveConfig) -> None:
        self._loss = behaviour_cloning
        self.needs_entropy = config.entropy_coeff > 0

    def __call__(self, outputs: Outputs, batch: Batch) -> TokenLosses:
        return self._loss(outputs.logprobs, batch)
