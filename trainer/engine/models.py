"""Policy, critic and reference on one rank, as far as the objective asks for them. Every method is called on all ranks."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch

from trainer.engine.commands import EvaluateCommand, Model, OpenCommand, TrainCommand, WriteCommand
from trainer.engine.critic import CRITIC, load_critic
from trainer.engine.deepspeed_engine import DeepSpeedEngine, StepSums, TokenLoss, adam_w, initialize
from trainer.engine.held_state import open_saved
from trainer.engine.idle import idle_item
from trainer.engine.ranks import Ranks
from trainer.engine.reference import AdaptersOff, FrozenModel, Reference
from trainer.engine.settings import EngineSettings
from trainer.estimators import traits_of
from trainer.model.adapter_folder import base_of
from trainer.model.adapters import DropoutSeeds, adapters_of
from trainer.model.batches import Batch, collate
from trainer.model.layers import Layer, gathered_layers
from trainer.model.loading import load_policy
from trainer.model.logprobs import CompletionModel
from trainer.model.model_folder import stop_tokens, suppressed_tokens
from trainer.model.pixel_scale import pixel_scale
from trainer.model.stored_weights import stored_layers
from trainer.model.tensor_files import write_tensors, write_weights
from trainer.objective.policy_objective import Objective, PolicyObjective
from trainer.token_losses.value_loss import ValueLoss

OPTIMIZER, CRITIC_OPTIMIZER = "optimizer", "critic-optimizer"
"""What each rank holds of them, in a version's `trainer/`."""


class Models:
    """Loaded as `command` says."""

    def __init__(self, command: OpenCommand, *, ranks: Ranks, settings: EngineSettings) -> None:
        """Raises `CheckpointCorrupt` when the saved state does not fit the model."""
        folder = Path(command.folder)
        self._base = base_of(folder)
        self._ranks = ranks
        self._settings = settings
        self._collate = partial(collate, scale=pixel_scale(self._base))
        self._dropout = DropoutSeeds(settings.trainer.lora, seed=settings.trainer.seed, rank=ranks.rank)
        resume = Path(command.resume) if command.resume else None
        self.module = load_policy(folder, settings.deepspeed, settings.trainer, resume=resume is not None)
        """The policy itself, as transformers loads it."""
        self.idle = idle_item(self.module, stop_token=min(stop_tokens(self._base)))
        """Work without effect, for passes that all parameters have to take part in."""
        later = command.num_updates if resume != folder else 0
        self.policy = self._open_policy(resume, num_updates=later)
        self.critic = self._open_critic(resume) if traits_of(settings.objective).critic else None
        self.reference = self._open_reference(Path(command.base)) if settings.objective.needs_reference else None

    def train(self, command: TrainCommand) -> StepSums:
        engine = self.critic if command.critic else self.policy
        assert engine is not None, "the objective has no critic"
        return engine.step(command.share, command.learning_rate)

    def evaluate(self, command: EvaluateCommand) -> bytes:
        """What the model says of this rank's share, float32, (completion tokens of all its samples,)."""
        said = []
        for part in command.share:
            batch = self._collate(part).to(self._ranks.device)
            said.append(self._said(command, batch).float().cpu().numpy().tobytes())
        return b"".join(said)

    def write(self, command: WriteCommand) -> None:
        """Writes the policy where transformers and vLLM look for it, and of a whole state what training needs beside it:
        weights are written by rank 0, what each rank holds of an optimizer by that rank.

        Raises:
            OSError: this rank cannot write its part. The others need it all the same, for what they write behind that.
        """
        failures: list[OSError] = []
        for write in self._writing(Path(command.folder), whole=command.whole):
            try:
                write()
            except OSError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _writing(self, folder: Path, *, whole: bool) -> Iterator[Callable[[], None]]:
        adapters, beside = adapters_of(self.module), folder / "trainer"
        if adapters is not None:
            yield partial(self._write_layers, self.module, partial(adapters.write, folder))
        else:
            write = partial(self._write_layers, frozen=True)
            yield partial(write, self.module, lambda layers: write_weights(folder, stored_layers(self.module, layers)))
        if whole:
            yield partial(self.policy.write, beside, OPTIMIZER)
        if whole and self.critic is not None:
            yield partial(self._write_layers, self.critic.named, partial(write_tensors, beside, CRITIC))
            yield partial(self.critic.write, beside, CRITIC_OPTIMIZER)

    def _write_layers(
        self, model: torch.nn.Module, write: Callable[[Iterator[Layer]], object], *, frozen: bool = False
    ) -> None:
        """Every rank goes through all layers, whatever becomes of the writing. `frozen`: also through those not trained."""
        layers = gathered_layers(model, keeps=self._ranks.rank == 0, frozen=frozen)
        try:
            if self._ranks.rank == 0:
                write(layers)
        finally:
            for _ in layers:
                pass

    def destroy(self) -> None:
        for engine in (self.policy, self.critic):
            if engine is not None:
                engine.destroy()

    def _said(self, command: EvaluateCommand, batch: Batch) -> torch.Tensor:
        match command.model:
            case Model.POLICY:
                found = self.policy.forward(batch, command.truncation).logprobs
            case Model.REFERENCE:
                assert self.reference is not None, "the objective has no reference"
                found = self.reference(batch, command.truncation).logprobs
            case Model.CRITIC:
                assert self.critic is not None, "the objective has no critic"
                found = self.critic.forward(batch)
        result: torch.Tensor = found
        return result

    def _open_policy(self, resume: Path | None, *, num_updates: int) -> DeepSpeedEngine:
        objective: Objective = PolicyObjective(self._settings.objective)
        engine = self._engine(
            CompletionModel(self.module, suppressed_tokens(self._base)),
            self.module,
            learning_rate=self._settings.algorithm.learning_rate,
            token_loss=objective,
            entropy=objective.needs_entropy,
        )
        engine.num_updates = num_updates
        if resume is not None:
            with open_saved(resume / "trainer", OPTIMIZER) as saved:
                engine.restore(saved, self.idle, num_updates=num_updates)
        return engine

    def _open_critic(self, resume: Path | None) -> DeepSpeedEngine:
        config = self._settings.objective.critic
        saved = resume / "trainer" if resume is not None else None
        module = load_critic(self._base, self._settings.deepspeed, saved)
        engine = self._engine(module, module, learning_rate=config.learning_rate, token_loss=ValueLoss(config.value_clip))
        if saved is not None:
            with open_saved(saved, CRITIC_OPTIMIZER) as state:
                engine.restore(state, self.idle)
        return engine

    def _engine(
        self,
        module: torch.nn.Module,
        named: torch.nn.Module,
        *,
        learning_rate: float,
        token_loss: TokenLoss,
        **arguments: bool,
    ) -> DeepSpeedEngine:
        algorithm = self._settings.algorithm
        optimizer = adam_w(named, algorithm, learning_rate=learning_rate)
        return DeepSpeedEngine(
            initialize(module, optimizer, self._settings.deepspeed.completed(algorithm), self._ranks),
            named,
            token_loss=token_loss,
            dropout=self._dropout,
            collate=self._collate,
            ranks=self._ranks,
            **arguments,
        )

    def _open_reference(self, base: Path) -> Reference:
        named = self._settings.objective.reference_model
        if self._settings.trainer.lora.active and not named:
            return AdaptersOff(self.module, self.policy.forward)
        return FrozenModel(Path(named) if named else base, deepspeed=self._settings.deepspeed, ranks=self._ranks)
