"""Computes what one optimizer step minimises, token by token: a policy loss, and what is added to it."""

from typing import Protocol

import torch

from schemas.objective_config import ObjectiveConfig
from trainer.losses import Outputs, TokenLosses, configured_loss, needs_proximal
from trainer.model.batches import Batch
from trainer.objective.early_stop import stopped
from trainer.objective.kl import divergence
from trainer.objective.ratios import importance_ratio


class Objective(Protocol):
    """Loads with the engine, on every rank."""

    @property
    def needs_entropy(self) -> bool: ...

    def __call__(self, outputs: Outputs, batch: Batch) -> TokenLosses: ...


class PolicyObjective:
    """loss + kl_loss_coef * KL - entropy_coeff * H, as configured; 0 for sequences that are stopped early."""

    def __init__(self, config: ObjectiveConfig) -> None:
        self._config = config
        self._loss = configured_loss(config)
        self._proximal = needs_proximal(config)
        self.needs_entropy = config.entropy_coeff > 0

    def __call__(self, outputs: Outputs, batch: Batch) -> TokenLosses:
        config = self._config
        token = self._loss(outputs.logprobs, batch)
        losses, metrics = token.losses, dict(token.metrics)
        if config.needs_reference:
            from_reference = divergence(outputs.logprobs - batch.reference, config.kl_loss_type)
            metrics["kl_reference"] = from_reference.detach()
            if config.kl_loss_coef:
                losses = losses + config.kl_loss_coef * from_reference
        if config.entropy_coeff:
            assert outputs.entropies is not None
            metrics["entropy"] = outputs.entropies.detach()
            losses = losses - config.entropy_coeff * outputs.entropies
        if token.ratios is not None:
            metrics |= _moved(outputs.logprobs.detach(), batch, proximal=self._proximal)
            if config.early_stop_imp_ratio:
                left_out = stopped(token.ratios, batch, config.early_stop_imp_ratio)
                metrics["stopped_tokens"] = left_out.to(losses.dtype)
                losses = losses.masked_fill(left_out, 0.0)
        return TokenLosses(losses, metrics, token.ratios)


def _moved(logprobs: torch.Tensor, batch: Batch, *, proximal: bool) -> dict[str, torch.Tensor]:
    """How far the policy is from those that it is compared with, token by token.

    `ratio` and `ratio_squared`: pi / pi_behaviour; mean(ratio)^2 / mean(ratio_squared) is the effective share of the samples.
    `kl_behaviour` and `kl_proximal`: ratio - 1 - log ratio, which estimates KL(sampler, pi) and is never below zero.
    """
    ratio = importance_ratio(logprobs, batch.behaviour)
    metrics = {"ratio": ratio, "ratio_squared": ratio.square(), "kl_behaviour": ratio - 1.0 - ratio.log()}
    if proximal:
        near = importance_ratio(logprobs, batch.proximal)
        metrics["kl_proximal"] = near - 1.0 - near.log()
    return metrics
