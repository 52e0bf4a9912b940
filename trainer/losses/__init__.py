"""Policy losses, one a file: every completion token's loss from its log-probability and its targets.

Aggregation is the same for all and has happened before (`Batch.weights`): a loss file never divides by a number of tokens.

    @loss("reinforce")
    def reinforce(logprobs: torch.Tensor, batch: Batch) -> TokenLosses:
        return TokenLosses(-batch.advantages * logprobs)

Feeder and trainer look at a loss before anything is computed: those of Millrace's own load without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from schemas.extensions import LOSSES, Part
from schemas.objective_config import ObjectiveConfig
from schemas.part_settings import configured

if TYPE_CHECKING:
    import torch

    from trainer.model.batches import Batch

Made = TypeVar("Made", bound=Callable[..., object])


@dataclass(frozen=True, eq=False)
class Outputs:
    """What the model says of a batch's N completion tokens. (DeepSpeed's hooks look into it by `vars`: no slots.)"""

    logprobs: torch.Tensor
    """float32, (N,)."""
    entropies: torch.Tensor | None = None
    """float32, (N,): of the whole distribution at each token; None when the objective did not ask for it."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenLosses:
    """Of one micro-batch."""

    losses: torch.Tensor
    """float32, (N,)."""
    metrics: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """Detached, (N,) each: reported as means over the step's trained tokens, all micro-batches and ranks. Their names
    depend on the configuration alone."""
    ratios: torch.Tensor | None = None
    """Detached, (N,): of the policy to the one that the loss keeps it near; None for losses that know no ratio."""


class Loss(Protocol):
    """With its settings: logprobs float32 (N,) and the batch's targets -> losses (N,)."""

    def __call__(self, logprobs: torch.Tensor, batch: Batch) -> TokenLosses: ...


@dataclass(frozen=True)
class LossTraits:
    """What the trainer does for a loss."""

    imitates: bool = False
    """It knows no advantages: it goes with `adv_estimator: none`."""
    ratio: bool = False
    """It returns ratios, by which sequences can be stopped early."""
    proximal: bool = False
    """`Batch.proximal`, the log-probabilities at the start of the update, is computed."""


def loss(name: str, *, imitates: bool = False, ratio: bool = False, proximal: bool = False) -> Callable[[Made], Made]:
    """Declares a loss: a function, or a class that is made with its settings and then called."""
    traits = LossTraits(imitates=imitates, ratio=ratio, proximal=proximal)
    return lambda made: LOSSES.declare(name, made, traits)


def loss_part(config: ObjectiveConfig) -> Part[Callable[..., object], LossTraits]:
    """Raises `ConfigurationError` where there is none of that name."""
    return LOSSES.find(config.loss_type)


def configured_loss(config: ObjectiveConfig) -> Loss:
    """With all its settings."""
    made: Loss = configured(loss_part(config).made, vars(config) | config.settings)
    return made


def needs_proximal(config: ObjectiveConfig) -> bool:
    """Whether the log-probabilities at the start of the update are used, besides the sampler's own."""
    return loss_part(config).traits.proximal or config.kl_reward_coef > 0
