"""One DeepSpeed engine: optimizer steps over samples, log-probabilities, and the state that a checkpoint holds.

The same code runs on CPU (gloo) and GPU (NCCL), ZeRO stages 1 to 3, one process or many. Rank 0 calls the methods; every
other rank sits in `follow`, which runs the same commands on its share of the samples.
"""

import os
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from schemas.errors import CheckpointCorrupt
from schemas.ids import EpisodeId
from schemas.messages import RecordRef
from schemas.training_config import AlgorithmConfig, ObjectiveConfig, TrainerConfig
from trainer.batches import collate, deal, micro_batches
from trainer.commands import Command, LogprobsCommand, OpenCommand, StateCommand, StopCommand, TrainCommand, decode, encode
from trainer.deepspeed_config import DeepSpeedConfig
from trainer.engine_state import EngineState, read_optimizer_state, read_state, restore_state
from trainer.items import Item, targets_of
from trainer.loading import load_policy
from trainer.logprobs import CompletionModel
from trainer.model_folder import suppressed_tokens
from trainer.objective import Objective, PolicyObjective
from trainer.ports import Effort, StepResult
from trainer.ranks import Ranks
from trainer.sample_builder import pixel_scale
from trainer.samples import Patches, Sample
from trainer.throughput import ModelCost, peak_flops
from trainer.truncation import Truncation

_LOSS = "loss"


def learning_rate(algorithm: AlgorithmConfig, num_updates: int) -> float:
    """Of the update that follows `num_updates` earlier ones: constant after a linear warm-up."""
    return algorithm.learning_rate * min(1.0, (num_updates + 1) / max(1, algorithm.warmup_steps))


@contextmanager
def open_engine(folder: Path, *, settings: "EngineSettings", resume: bool = False) -> Iterator["TrainEngine"]:
    """Loads the model in `folder` for training, on all ranks; with `resume`, its saved optimizer state too. For rank 0.

    Raises:
        CheckpointCorrupt: the saved optimizer state does not fit the model.
    """
    ranks = Ranks()
    ranks.scatter([encode(OpenCommand(str(folder), resume))] * ranks.size)
    engine = TrainEngine(folder, ranks=ranks, settings=settings, resume=resume)
    try:
        yield engine
    finally:
        engine.close()


def follow(*, settings: "EngineSettings") -> None:
    """The whole life of a rank other than 0: opens what rank 0 opens and runs its commands until it stops."""
    ranks = Ranks()
    command = decode(ranks.scatter(None))
    assert isinstance(command, OpenCommand)
    engine = TrainEngine(Path(command.folder), ranks=ranks, settings=settings, resume=command.resume)
    engine.follow()


@dataclass(frozen=True)
class EngineSettings:
    deepspeed: DeepSpeedConfig
    algorithm: AlgorithmConfig
    trainer: TrainerConfig
    objective: ObjectiveConfig = ObjectiveConfig()


class TrainEngine:
    """Built by `open_engine` on every rank."""

    def __init__(self, folder: Path, *, ranks: Ranks, settings: EngineSettings, resume: bool) -> None:
        self.num_updates = 0
        """Optimizer steps so far, over the whole run."""
        self._ranks = ranks
        self._algorithm = algorithm = settings.algorithm
        self._objective: Objective = PolicyObjective(settings.objective)
        self._scale = pixel_scale(folder)
        threads = settings.trainer.torch_threads
        if threads or (os.cpu_count() or 1) <= 4:
            torch.set_num_threads(threads or 1)
        self.model = load_policy(folder, settings.deepspeed, settings.trainer)
        self._cost = ModelCost.of(self.model.config)
        self._peak = peak_flops(ranks.device, settings.trainer.peak_tflops) * ranks.size
        optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=algorithm.learning_rate,
            betas=(0.9, algorithm.adam_beta2),
            weight_decay=algorithm.weight_decay,
            fused=True,
        )
        module = CompletionModel(self.model, suppressed_tokens(folder))
        self._engine = _initialize(module, optimizer, settings.deepspeed.completed(algorithm), ranks)
        if resume:
            self._restore(*read_optimizer_state(folder))

    # what rank 0 calls ------------------------------------------------------------------------------------------------

    @property
    def step_size(self) -> int:
        """Samples of one optimizer step, all ranks."""
        return self._algorithm.per_device_train_batch_size * self._algorithm.gradient_accumulation_steps * self._ranks.size

    def train(self, items: Sequence[Item]) -> StepResult:
        """Makes one optimizer step over all `items`, however many; their weights say what each token counts."""
        began = time.perf_counter()
        shares = deal(
            items,
            num_ranks=self._ranks.size,
            micro_batch=self._algorithm.per_device_train_batch_size,
            max_tokens=self._algorithm.max_tokens_per_micro_batch,
        )
        num_tokens = sum(int((item.targets.weights != 0).sum()) for item in items)
        rate = learning_rate(self._algorithm, self.num_updates)
        command = self._send([TrainCommand(share, rate) for share in shares])
        assert isinstance(command, TrainCommand)
        sums, norm = self._train(command)
        loss = sums.pop(_LOSS)
        figures = {name: total / max(1, num_tokens) for name, total in sums.items()}
        work = self._cost.work([item.sample for item in items])
        effort = Effort(time.perf_counter() - began, work.tokens, work.completion_tokens, work.flops, self._peak)
        return StepResult(loss, norm, rate, num_tokens, figures, effort)

    def completion_logprobs(self, samples: Sequence[Sample], truncation: Truncation | None = None) -> list[np.ndarray]:
        """Log-probabilities of every sample's completion tokens, float32, under the present weights."""
        command = LogprobsCommand(list(samples), truncation or Truncation())
        self._send([command] * self._ranks.size)
        return self._logprobs(command)

    def state(self) -> EngineState:
        """Everything that the next step depends on, on the CPU. Full tensors, whatever the number of ranks."""
        self._send([StateCommand()] * self._ranks.size)
        return read_state(self._engine, self.model, self.num_updates)

    def close(self) -> None:
        """Lets the other ranks go; on those, nothing is left to do."""
        if self._ranks.rank == 0 and self._ranks.size > 1:
            self._send([StopCommand()] * self._ranks.size)
        self._engine.destroy()

    # every rank -------------------------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Runs rank 0's commands until it stops."""
        while True:
            match decode(self._ranks.scatter(None)):
                case TrainCommand() as command:
                    self._train(command)
                case LogprobsCommand() as command:
                    self._logprobs(command)
                case StateCommand():
                    read_state(self._engine, self.model, self.num_updates)
                case StopCommand():
                    return

    def _restore(self, optimizer: Mapping[str, torch.Tensor], num_updates: int) -> None:
        if num_updates == 0:
            return
        # A step of rate zero makes the optimizer allocate its state in every ZeRO stage, and changes no weight.
        sample = _smallest_sample(self.model)
        self._train(TrainCommand([[Item(sample, targets_of(sample)).idle]], 0.0))
        try:
            restore_state(self._engine, self.model, optimizer, num_updates)
        except KeyError as error:
            raise CheckpointCorrupt(
                f"the saved optimizer state lacks {error}: it belongs to another model or precision"
            ) from error
        self.num_updates = num_updates

    def _send(self, commands: Sequence[Command]) -> Command:
        """Tells every rank its command and returns this rank's own."""
        if self._ranks.size > 1:
            self._ranks.scatter([encode(command) for command in commands])
        return commands[0]

    def _train(self, command: TrainCommand) -> tuple[dict[str, float], float]:
        """The sums of the loss and of every figure over all ranks, and the norm of the gradient."""
        for group in self._engine.optimizer.param_groups:
            group["lr"] = command.learning_rate
        if not self.model.training:
            self._engine.train()
        sums: defaultdict[str, float] = defaultdict(float)
        for index, part in enumerate(command.share):
            batch = collate(part, self._scale).to(self._ranks.device)
            self._engine.set_gradient_accumulation_boundary(index == len(command.share) - 1)
            token = self._objective(self._engine(batch, entropy=self._objective.needs_entropy), batch)
            loss = (token.losses * batch.weights).sum()
            # DeepSpeed averages gradients over ranks; the sum over ranks is meant.
            self._engine.backward(loss * self._ranks.size)
            sums[_LOSS] += float(loss.detach())
            for name, values in token.figures.items():
                sums[name] += float((values * batch.trained).sum())
        self._engine.step()
        self.num_updates += 1
        norm = self._engine.get_global_grad_norm()
        totals = {name: self._ranks.sum(sums[name]) for name in sorted(sums)}
        return totals, float(norm) if norm is not None else float("nan")

    @torch.no_grad()
    def _logprobs(self, command: LogprobsCommand) -> list[np.ndarray]:
        self._engine.eval()
        found: list[np.ndarray] = []
        parts = micro_batches(
            command.samples,
            lambda sample: len(sample.tokens),
            size=self._algorithm.per_device_train_batch_size,
            max_tokens=self._algorithm.max_tokens_per_micro_batch,
        )
        for part in parts:
            batch = collate([Item(sample, targets_of(sample)) for sample in part], self._scale).to(self._ranks.device)
            logprobs = self._engine(batch, command.truncation).logprobs.cpu().numpy()
            ends = np.cumsum([sample.num_completion for sample in part])
            found.extend(np.split(logprobs, ends[:-1]))
        return found


def _initialize(module: torch.nn.Module, optimizer: torch.optim.Optimizer, settings: dict[str, Any], ranks: Ranks) -> Any:
    if ranks.device.type == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import deepspeed
        import deepspeed.ops

        # Compiled at run time otherwise; a process killed meanwhile leaves a lock on which the next one hangs silently.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
        engine, *_ = deepspeed.initialize(model=module, optimizer=optimizer, config=settings, dist_init_required=False)
    return engine


def _smallest_sample(model: PreTrainedModel) -> Sample:
    """One picture of one token and one completion token: passes through every parameter."""
    config, vision = model.config, model.config.vision_config
    side = int(vision.spatial_merge_size)
    values = int(vision.in_channels) * int(vision.patch_size) ** 2
    stop = config.text_config.eos_token_id
    tokens = [config.vision_start_token_id, config.image_token_id, config.vision_end_token_id, stop]
    return Sample(
        ref=RecordRef(EpisodeId("warm-up"), attempt=0, kind="act", step=0),
        tokens=np.array(tokens, dtype=np.int32),
        num_prompt=3,
        positions=np.arange(4, dtype=np.int32)[None].repeat(3, axis=0),
        logprobs=np.zeros(1, dtype=np.float32),
        temperature=1.0,
        pictures=(Patches(np.zeros((side * side, values), dtype=np.uint8), (1, side, side)),),
        versions=frozenset(),
    )
