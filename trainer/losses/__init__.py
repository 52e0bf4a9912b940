"""Policy losses, one a file: every completion token's loss from its log-probability and its targets.

Aggregation is the same for all and has happened before (`TokenTargets.weights`): a loss never divides by a number of tokens.

    @loss("careful")
    def careful(logprobs: torch.Tensor, targets: TokenTargets) -> TokenLosses:
        return TokenLosses(-targets.advantages.clamp(min=-0.1) * logprobs)

A loss can be tried alone, on tensors that are written down:

    >>> import torch
    >>> from trainer.losses.decoupled import Decoupled
    >>> targets = TokenTargets.of(
    ...     torch.tensor([1.0, 1.0, -1.0]),
    ...     behaviour=torch.tensor([-1.0, -2.0, -0.5]),
    ...     proximal=torch.tensor([-1.0, -1.9, -0.5]),
    ...     reference=torch.tensor([-1.0, -2.0, -0.5]),
    ...     weights=torch.tensor([0.25, 0.25, 0.5]),
    ...     sequences=torch.tensor([0, 0, 1]),
    ... )
    >>> logprobs = torch.tensor([-1.0, -1.5, -0.9], requires_grad=True)
    >>> found = Decoupled(clip_ratio_high=0.28)(logprobs, targets)
    >>> (found.losses * targets.weights).sum().backward()
    >>> found.losses.detach(), logprobs.grad
    (tensor([-1.0000, -1.4146,  0.8000]), tensor([-0.2500,  0.0000,  0.0000]))

Feeder and trainer look at a loss before anything is computed: those of Millrace's own load without torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from schemas.extensions import LOSSES, Part
from schemas.objective_config import ObjectiveConfig
from schemas.part_settings import configured
from trainer.token_losses import TokenLosses, TokenTargets

if TYPE_CHECKING:
    import torch

Made = TypeVar("Made", bound=Callable[..., object])


class Loss(Protocol):
    """With its settings: logprobs float32 (N,) and their targets -> losses (N,)."""

    def __call__(self, logprobs: torch.Tensor, targets: TokenTargets) -> TokenLosses: ...


@dataclass(frozen=True)
class LossTraits:
    """What the trainer does for a loss."""

    imitates: bool = False
    """It knows no advantages: it goes with `adv_estimator: none`."""
    ratio: bool = False
    """It returns ratios, by which sequences can be stopped early."""
    proximal: bool = False
    """`TokenTargets.proximal`, the log-probabilities at the start of the update, is computed."""
    skips_zero_advantage: bool = False
    """Tokens whose advantage is 0 have no gradient, so that their forward pass can be saved."""
    augments: bool = False
    """Samples may be varied (`trainer.augmentations`): it keeps near the policy at the start of the update, if near any, which
    can be asked about a sample that nobody sampled."""


def loss(
    name: str,
    *,
    imitates: bool = False,
    ratio: bool = False,
    proximal: bool = False,
    skips_zero_advantage: bool = False,
    augments: bool = False,
) -> Callable[[Made], Made]:
    """Declares a loss: a function, or a class that is made with its settings and then called."""
    traits = LossTraits(
        imitates=imitates,
        ratio=ratio,
        proximal=proximal,
        skips_zero_advantage=skips_zero_advantage,
        augments=augments,
    )
    return lambda made: LOSSES.declare(name, made, traits)


def loss_part(config: ObjectiveConfig) -> Part[Callable[..., object], LossTraits]:
    """Raises `ConfigurationError` where there is none of that name."""
    return LOSSES.find(config.loss_type)


def configured_loss(config: ObjectiveConfig) -> Loss:
    """With all its settings."""
    made: Loss = configured(loss_part(config).made, vars(config) | config.settings)
    return made


def may_augment(config: ObjectiveConfig) -> bool:
    """Whether nothing is asked of a sample that only the one that was sampled would answer."""
    traits = loss_part(config).traits
    return traits.augments and not config.needs_reference and not (traits.proximal and config.proximal != "forward")


def needs_proximal(config: ObjectiveConfig) -> bool:
    """Whether the log-probabilities at the start of the update are to be computed, besides the sampler's own."""
    return (loss_part(config).traits.proximal and config.proximal == "forward") or config.kl_reward_coef > 0
