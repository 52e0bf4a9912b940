"""Defines the ports of the trainer's heavy parts: a training engine, and a builder of samples. Loads without torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from schemas.messages import RecordRef, StepRequest
from trainer.items import Item
from trainer.samples import LeftOut, Patches, Sample
from trainer.truncation import Truncation


@dataclass(frozen=True, slots=True)
class Effort:
    """What an optimizer step took, all ranks together; steps can be added up."""

    seconds: float = 0.0
    tokens: int = 0
    """Of prompts and completions."""
    completion_tokens: int = 0
    flops: float = 0.0
    """That the model needs, see `trainer.engine.throughput`."""
    peak_flops_per_s: float = 0.0
    """Of all devices; 0: not known."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """One optimizer step."""

    loss: float
    """The sum of weight * token loss over the step, all ranks."""
    grad_norm: float
    learning_rate: float
    num_tokens: int
    """Completion tokens trained on."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The objective's own, means over the same tokens."""
    effort: Effort = field(default=Effort(), compare=False)


class EngineFiles(Protocol):
    """The engine's part of a checkpoint."""

    def write(self, folder: Path) -> None:
        """Writes what policies load into `folder`, and of a whole state what training continues from into `folder`/trainer."""
        ...


class TrainingEngine(Protocol):
    """Optimizer steps over samples. Every method is called from one thread at a time."""

    rate_factor: float
    """Of every learning rate; 1 when opened."""

    @property
    def num_updates(self) -> int:
        """Optimizer steps so far, over the whole run."""
        ...

    @property
    def step_size(self) -> int:
        """Samples of one optimizer step, all ranks."""
        ...

    def train(self, items: Sequence[Item]) -> StepResult:
        """Makes one optimizer step over all `items`, however many; their weights say what each token counts."""
        ...

    def train_critic(self, items: Sequence[Item]) -> StepResult:
        """Makes one optimizer step of the critic towards the items' returns. Only where the objective needs one."""
        ...

    def completion_logprobs(self, samples: Sequence[Sample], truncation: Truncation | None = None) -> list[np.ndarray]:
        """Log-probabilities of every sample's completion tokens, float32, under the present weights."""
        ...

    def reference_logprobs(self, samples: Sequence[Sample], truncation: Truncation | None = None) -> list[np.ndarray]:
        """The same under the frozen reference. Only where the objective needs one."""
        ...

    def values(self, samples: Sequence[Sample]) -> list[np.ndarray]:
        """The critic's value before each completion token, float32. Only where the objective needs one."""
        ...

    def fresh_adapters(self) -> EngineFiles:
        """Adapters that change nothing, as training begins with. Only where adapters are trained."""
        ...

    def files(self, *, whole: bool) -> EngineFiles:
        """Everything that the next step depends on, as of now; unless it shall be `whole`, what policies load. To be written
        before the next step."""
        ...


class Builder(Protocol):
    """Makes samples of steps and screenshots, for one model."""

    def refusal(self, step: StepRequest) -> LeftOut | None:
        """Why no sample can be built of a step, as far as the step itself tells; None when one can."""
        ...

    def patches(self, encoded: Sequence[bytes]) -> list[Patches]:
        """Raises `UnusableRecord` where a screenshot cannot be opened."""
        ...

    def build(self, ref: RecordRef, step: StepRequest, screenshots: Sequence[Patches]) -> Sample:
        """Raises `UnusableRecord` when the step's prompt does not fit the screenshots."""
        ...
