"""Computes what one optimizer step minimises, token by token: a policy loss, and what is added to it."""

from dataclasses import replace
from functools import partial
from typing import Protocol

import torch

from schemas.objective_config import ObjectiveConfig
from trainer.losses import configured_loss, loss_part
from trainer.objective.early_stop import stopped
from trainer.objective.proximal import interpolated_proximal
from trainer.objective.rejection import rejected
from trainer.token_losses import Outputs, TokenLosses, TokenTargets
from trainer.token_losses.kl import divergence
from trainer.token_losses.ratios import importance_ratio


class Objective(Protocol):
    """Loads with the engine, on every rank."""

    @property
    def needs_entropy(self) -> bool: ...

    def __call__(self, outputs: Outputs, targets: TokenTargets) -> TokenLosses: ...


class PolicyObjective:
    """loss + kl_loss_coef * KL - entropy_coeff * H, as configured; 0 for what is rejected or stopped early."""

    def __init__(self, config: ObjectiveConfig) -> None:
        self._config = config
        self._loss = configured_loss(config)
        self._proximal = loss_part(config).traits.proximal
        self._interpolates = self._proximal and config.proximal == "interpolated"
        self._rejected = partial(
            rejected,
            level=config.rejection_level,
            kind=config.rejection_kind,
            low=config.rejection_low,
            high=config.rejection_high,
        )
        self.needs_entropy = config.entropy_coeff > 0

    def __call__(self, outputs: Outputs, targets: TokenTargets) -> TokenLosses:
        config = self._config
        if self._interpolates:
            targets = replace(targets, proximal=interpolated_proximal(outputs.logprobs, targets))
        token = self._loss(outputs.logprobs, targets)
        losses, metrics = token.losses, dict(token.metrics)
        if config.needs_reference:
            from_reference = divergence(outputs.logprobs - targets.reference, config.kl_loss_type)
            metrics["kl_reference"] = from_reference.detach()
            if config.kl_loss_coef:
                losses = losses + config.kl_loss_coef * from_reference
        if config.entropy_coeff:
            assert outputs.entropies is not None
            metrics["entropy"] = outputs.entropies.detach()
            losses = losses - config.entropy_coeff * outputs.entropies
        if token.ratios is not None:
            now = outputs.logprobs.detach()
            metrics |= _moved(now, targets, proximal=self._proximal)
            if config.rejection_level != "none":
                left_out = self._rejected((targets.proximal if self._proximal else now) - targets.behaviour, targets)
                metrics["rejected_tokens"] = left_out.to(losses.dtype)
                losses = losses.masked_fill(left_out, 0.0)
            if config.early_stop_imp_ratio:
                left_out = stopped(token.ratios, targets, config.early_stop_imp_ratio)
                metrics["stopped_tokens"] = left_out.to(losses.dtype)
                losses = losses.masked_fill(left_out, 0.0)
        return TokenLosses(losses, metrics, token.ratios)


def _moved(logprobs: torch.Tensor, targets: TokenTargets, *, proximal: bool) -> dict[str, torch.Tensor]:
    """How far the policy is from those that it is compared with, token by token.

    `ratio` and `ratio_squared`: pi / pi_behaviour; mean(ratio)^2 / mean(ratio_squared) is the effective share of the samples.
    `kl_behaviour` and `kl_proximal`: ratio - 1 - log ratio, which estimates KL(sampler, pi) and is never below zero.
    """
    ratio = importance_ratio(logprobs, targets.behaviour)
    metrics = {"ratio": ratio, "ratio_squared": ratio.square(), "kl_behaviour": ratio - 1.0 - ratio.log()}
    if proximal:
        near = importance_ratio(logprobs, targets.proximal)
        metrics["kl_proximal"] = near - 1.0 - near.log()
    return metrics
