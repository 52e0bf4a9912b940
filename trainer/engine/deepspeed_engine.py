"""One model in training on DeepSpeed: optimizer steps, forward passes, and its state. On every rank, with that rank's share.

Invariant: micro-batches and ranks change neither loss nor gradient, since every token's weight was settled before
(`trainer.objective.aggregation`). Several may live in one process, as policy and critic do.
"""

import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from schemas.algorithm_config import AlgorithmConfig
from schemas.errors import CheckpointCorrupt, ConfigurationError
from trainer.engine.dealing import Share
from trainer.engine.deepspeed_module import import_deepspeed
from trainer.engine.held_state import Progress, SavedState, restore_held, write_held
from trainer.engine.loss_scale import LossScale
from trainer.engine.ranks import Ranks
from trainer.items import Item
from trainer.model.adapters import DropoutSeeds
from trainer.model.batches import Batch
from trainer.model.layers import trained_parameters
from trainer.token_losses import TokenLosses, TokenTargets

Collate = Callable[[Sequence[Item]], Batch]
TokenLoss = Callable[[Any, TokenTargets], TokenLosses]
"""What the model says of a batch, and what its tokens are trained towards -> the loss of each of its tokens."""
_LONGEST = 500
_OTHER = {"fp16": "bf16", "bf16": "fp16"}


@dataclass(frozen=True, slots=True)
class StepSums:
    """Of one optimizer step, over all ranks."""

    loss: float
    metrics: dict[str, float]
    """Sums over the trained tokens."""
    grad_norm: float


def adam_w(named: nn.Module, algorithm: AlgorithmConfig, *, learning_rate: float) -> torch.optim.Optimizer:
    return torch.optim.AdamW(
        [parameter for _, parameter in trained_parameters(named)],
        lr=learning_rate,
        betas=(0.9, algorithm.adam_beta2),
        weight_decay=algorithm.weight_decay,
        fused=True,
    )


class DeepSpeedEngine:
    """Every method is called on all ranks at once."""

    def __init__(
        self,
        engine: Any,
        named: nn.Module,
        *,
        token_loss: TokenLoss,
        dropout: DropoutSeeds,
        collate: Collate,
        ranks: Ranks,
        **arguments: Any,
    ) -> None:
        """
        Args:
            engine: DeepSpeed's, of the module that is run; in training it is given `arguments` too.
            named: the part of it whose parameters, by their names there, are the state.
        """
        self.num_updates = 0
        """Optimizer steps so far, over the whole run."""
        self.named = named
        self._token_loss = token_loss
        self._arguments = arguments
        self._dropout = dropout
        self._collate = collate
        self._ranks = ranks
        self._engine = engine
        self._loss_scale = LossScale(engine.optimizer)

    def step(self, share: Share, rate: float) -> StepSums:
        """One optimizer step over this rank's micro-batches."""
        for group in self._engine.optimizer.param_groups:
            group["lr"] = rate
        if not self.named.training:
            self._engine.train()
        total, sums = self._loss_scale.step(lambda: self._attempt(share))
        self.num_updates += 1
        norm = self._engine.get_global_grad_norm()
        metrics = {name: self._ranks.sum(sums[name]) for name in sorted(sums)}
        return StepSums(self._ranks.sum(total), metrics, float(norm) if norm is not None else float("nan"))

    def _attempt(self, share: Share) -> tuple[float, dict[str, float]]:
        """This rank's loss and metrics."""
        self._dropout.begin(self.num_updates)
        # Added up where they are: asked for after every micro-batch, they would keep the next one from being prepared.
        total = torch.zeros((), dtype=torch.float64, device=self._ranks.device)
        sums = defaultdict[str, torch.Tensor](partial(torch.zeros_like, total))
        for index, part in enumerate(share):
            batch = self._collate(part).to(self._ranks.device)
            self._engine.set_gradient_accumulation_boundary(index == len(share) - 1)
            token = self._token_loss(self._engine(batch, **self._arguments), batch.targets)
            loss = (token.losses * batch.targets.weights).sum()
            # DeepSpeed averages gradients over ranks; the sum over ranks is meant.
            self._engine.backward(loss * self._ranks.size)
            total += loss.detach()
            for name, values in token.metrics.items():
                sums[name] += (values * batch.targets.trained).sum()
        self._engine.step()
        return float(total), {name: float(value) for name, value in sums.items()}

    @torch.no_grad()
    def forward(self, batch: Batch, *arguments: Any) -> Any:
        """What the model says under the present weights."""
        self._engine.eval()
        return self._engine(batch, *arguments)

    def write(self, folder: Path, stem: str) -> None:
        """Writes what this rank holds of the optimizer's state. Raises `OSError` where it cannot."""
        steps = [int(entry["step"]) for entry in self._engine.optimizer.optimizer.state.values()]
        progress = Progress(self.num_updates, max(steps, default=0), self._loss_scale.state)
        write_held(self.named, folder, stem, rank=self._ranks.rank, progress=progress)

    def restore(self, saved: SavedState, idle: Item, *, num_updates: int = 0) -> None:
        """Puts a saved optimizer state in place; the weights are those that the model was loaded with.

        Args:
            idle: a sample without weight that reaches every parameter.
            num_updates: optimizer steps behind these weights, where they are later ones than those of the saved state.

        Raises:
            CheckpointCorrupt: the state belongs to another model or precision.
        """
        if saved.progress.num_steps == 0:
            self.num_updates = num_updates or saved.progress.num_updates
            return
        # A step of rate zero makes the optimizer allocate its state in every ZeRO stage, and changes no weight.
        self.step([[idle]], 0.0)
        try:
            restore_held(self.named, saved, is_own=not num_updates)
        except KeyError as error:
            raise CheckpointCorrupt(
                f"the saved optimizer state lacks {error}: it belongs to another model or precision"
            ) from error
        for entry in self._engine.optimizer.optimizer.state.values():
            entry["step"].fill_(float(saved.progress.num_steps))
        self._loss_scale.restore(saved.progress.loss_scale)
        self.num_updates = num_updates or saved.progress.num_updates

    def destroy(self) -> None:
        self._engine.destroy()


def initialize(module: nn.Module, optimizer: torch.optim.Optimizer | None, settings: dict[str, Any], ranks: Ranks) -> Any:
    """DeepSpeed's own engine; without an optimizer, for forward passes alone.

    Raises:
        ConfigurationError: it does not take the settings, or this machine does not compute in the precision that is asked for.
    """
    accelerator = import_deepspeed().accelerator.get_accelerator()
    for name, computes in (("fp16", accelerator.is_fp16_supported), ("bf16", accelerator.is_bf16_supported)):
        if settings.get(name, {}).get("enabled", False) and not computes():
            raise ConfigurationError(
                f"the file of algorithm_config.deepspeed_config_filename enables {name}, in which the "
                f"{accelerator.device_name()} of this machine does not compute: enable {_OTHER[name]} there, or neither"
            )
    _require_taken(settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine, *_ = import_deepspeed().initialize(
            model=module, optimizer=optimizer, config=settings, dist_init_required=False
        )
    return engine


def _require_taken(settings: Mapping[str, Any]) -> None:
    try:
        import_deepspeed().DeepSpeedConfig(dict(settings))
    except Exception as error:  # the boundary to DeepSpeed, which raises what its readers of each key do
        said = " ".join(str(error).split())[:_LONGEST]
        raise ConfigurationError(
            f"DeepSpeed does not take the file of algorithm_config.deepspeed_config_filename: mend it there ({said})"
        ) from error
