"""The training engine: policy, critic and reference, commanded by rank 0.

The same code runs on CPU (gloo) and GPU (NCCL), ZeRO stages 1 to 3, one process or many. Rank 0 calls the methods; every
other rank sits in `follow`, which runs the same commands on its share of the samples.
"""

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel

from trainer.engine.commands import (
    Command,
    EvaluateCommand,
    Model,
    OpenCommand,
    StopCommand,
    TrainCommand,
    WriteCommand,
    decode,
    encode,
)
from trainer.engine.dealing import Share, deal
from trainer.engine.deepspeed_module import forget_engines
from trainer.engine.folders import Folders
from trainer.engine.models import Models
from trainer.engine.ranks import Ranks
from trainer.engine.schedule import scheduled
from trainer.engine.settings import EngineSettings
from trainer.engine.throughput import ModelCost, peak_flops
from trainer.items import Item, targets_of
from trainer.model.adapters import FreshAdapters
from trainer.ports import Effort, StepResult
from trainer.samples import Sample
from trainer.truncation import Truncation

WhileLoading = Callable[[], AbstractContextManager[None]]
"""Opened before a rank loads its models, and closed when it has them; may block."""


@contextmanager
def open_engine(
    folder: Path,
    *,
    settings: EngineSettings,
    resume: Path | None = None,
    num_updates: int = 0,
    base: Path | None = None,
    while_loading: WhileLoading = nullcontext,
) -> Iterator["TrainEngine"]:
    """Loads the model in `folder` for training, on all ranks. For rank 0. An engine before it takes no memory any more, where
    nobody holds it.

    Args:
        resume: the folder whose saved optimizer state is gone on with: `folder` itself, or that of an earlier version.
        num_updates: optimizer steps behind the model, where `resume` is an earlier one's or none.
        base: the folder of the run's version 0; not needed where `folder` is that.

    Raises:
        CheckpointCorrupt: the saved state does not fit the model.
    """
    ranks = Ranks()
    command = OpenCommand(str(folder), str(resume or ""), str(base or folder), num_updates)
    with ranks.command([encode(command)] * ranks.size):
        engine = _load(command, ranks, Folders(ranks, settings.run), settings, while_loading)
    try:
        yield engine
    finally:
        engine.close()


def follow(*, settings: EngineSettings, while_loading: WhileLoading = nullcontext) -> None:
    """The whole life of a rank other than 0: opens what rank 0 opens, as often as it does, until it is dismissed."""
    while True:
        ranks = Ranks()  # rank 0 makes its group anew for every engine, which takes all ranks
        with closing(Folders(ranks, settings.run)) as folders:
            with ranks.command() as received:
                command = decode(received)
                if not isinstance(command, OpenCommand):
                    return
                engine = _load(command, ranks, folders, settings, while_loading)
            engine.follow()
            engine.close()
            del engine  # the next one needs its memory


def _load(
    command: OpenCommand, ranks: Ranks, folders: Folders, settings: EngineSettings, while_loading: WhileLoading
) -> "TrainEngine":
    forget_engines()
    with while_loading():
        ranks.sum(0)  # until all may load: in what DeepSpeed has them do together, NCCL waits for ten minutes at most
        return TrainEngine(command, ranks=ranks, folders=folders, settings=settings)


def dismiss_ranks() -> None:
    """For rank 0, with no engine open: lets the other ranks end, unless a command has failed here alone."""
    if Ranks.under_way:
        return
    ranks = Ranks()
    if ranks.size > 1:
        ranks.scatter([encode(StopCommand())] * ranks.size)


class TrainEngine:
    """Built by `open_engine` on every rank."""

    def __init__(self, command: OpenCommand, *, ranks: Ranks, folders: Folders, settings: EngineSettings) -> None:
        self.rate_factor = 1.0
        """Of every learning rate. Only rank 0's counts."""
        threads = settings.trainer.torch_threads
        if threads or (os.cpu_count() or 1) <= 4:
            torch.set_num_threads(threads or 1)
        self._ranks = ranks
        self._settings = settings
        self._algorithm = settings.algorithm
        self._folders = folders
        self._models = Models(self._folders_here(command), ranks=ranks, settings=settings)
        cost = ModelCost.of(self.model.config)
        self._cost = cost if settings.trainer.trains_vision else replace(cost, screenshot_passes=1)
        self._peak = peak_flops(ranks.device, settings.trainer.peak_tflops) * ranks.size

    @property
    def model(self) -> PreTrainedModel:
        """The policy, as transformers loads it."""
        return self._models.module

    # what rank 0 calls ------------------------------------------------------------------------------------------------

    @property
    def num_updates(self) -> int:
        """Optimizer steps of the policy so far, over the whole run."""
        return self._models.policy.num_updates

    @property
    def step_size(self) -> int:
        """Samples of one optimizer step, all ranks."""
        return self._algorithm.per_device_train_batch_size * self._algorithm.gradient_accumulation_steps * self._ranks.size

    def train(self, items: Sequence[Item]) -> StepResult:
        """Makes one optimizer step over all `items`, however many; their weights say what each token counts."""
        return self._step(items, self._algorithm.learning_rate, self.num_updates, critic=False)

    def train_critic(self, items: Sequence[Item]) -> StepResult:
        """The same for the critic, towards the items' returns."""
        critic = self._models.critic
        assert critic is not None, "the objective has no critic"
        return self._step(items, self._settings.objective.critic.learning_rate, critic.num_updates, critic=True)

    def completion_logprobs(self, samples: Sequence[Sample], truncation: Truncation | None = None) -> list[np.ndarray]:
        """Log-probabilities of every sample's completion tokens, float32, under the present weights."""
        return self._evaluated(Model.POLICY, samples, truncation)

    def reference_logprobs(self, samples: Sequence[Sample], truncation: Truncation | None = None) -> list[np.ndarray]:
        """The same under the frozen reference."""
        return self._evaluated(Model.REFERENCE, samples, truncation)

    def values(self, samples: Sequence[Sample]) -> list[np.ndarray]:
        """The critic's value before each completion token, float32."""
        return self._evaluated(Model.CRITIC, samples, None)

    def fresh_adapters(self) -> FreshAdapters:
        """Adapters that change nothing, as training begins with."""
        return FreshAdapters.of(self.model, self._settings.trainer.seed)

    def files(self, *, whole: bool = True) -> "PresentFiles":
        """Everything that the next step depends on, in files that fit any number of ranks; unless it shall be `whole`, what
        policies load. To be written before the next step."""
        return PresentFiles(self, whole)

    def write(self, folder: Path, *, whole: bool) -> None:
        """Lets every rank write its part into rank 0's `folder`. Raises `OSError`: one could not."""
        command = WriteCommand(str(folder), whole)
        with self._told([command] * self._ranks.size):
            written = self._write(command)
        for said in written:
            if number := int.from_bytes(said):
                raise OSError(number, os.strerror(number), str(folder))

    def close(self) -> None:
        """Lets the other ranks go, unless a command has failed here alone; on those, nothing is left to do."""
        if Ranks.under_way:
            return
        if self._ranks.rank == 0 and self._ranks.size > 1:
            self._ranks.scatter([encode(StopCommand())] * self._ranks.size)
        self._models.destroy()

    # every rank -------------------------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Runs rank 0's commands until it stops."""
        while True:
            with self._ranks.command() as received:
                match decode(received):
                    case TrainCommand() as command:
                        self._models.train(command)
                    case EvaluateCommand() as command:
                        self._evaluate(command)
                    case WriteCommand() as command:
                        self._write(command)
                    case StopCommand():
                        return

    def _folders_here(self, command: OpenCommand) -> OpenCommand:
        """The same with this node's paths."""
        named = dict.fromkeys((command.folder, command.resume, command.base))
        here = {path: str(self._folders.here(Path(path))) if path else "" for path in named}
        return replace(command, folder=here[command.folder], resume=here[command.resume], base=here[command.base])

    @contextmanager
    def _told(self, commands: Sequence[Command]) -> Iterator[None]:
        """Tells every rank its command; rank 0 runs the first one itself within the context."""
        if self._ranks.size == 1:
            yield
            return
        with self._ranks.command([encode(command) for command in commands]):
            yield

    def _step(self, items: Sequence[Item], rate: float, num_updates: int, *, critic: bool) -> StepResult:
        began = time.perf_counter()
        shares = self._dealt(items)
        work = self._cost.work([item.sample for item in items])
        num_tokens = sum(int((item.targets.weights != 0).sum()) for item in items)
        rate = self.rate_factor * scheduled(rate, num_updates=num_updates, algorithm=self._algorithm)
        commands = [TrainCommand(share, rate, critic) for share in shares]
        with self._told(commands):
            sums = self._models.train(commands[0])
        metrics = {name: total / max(1, num_tokens) for name, total in sums.metrics.items()}
        effort = Effort(time.perf_counter() - began, work.tokens, work.completion_tokens, work.flops, self._peak)
        return StepResult(sums.loss, sums.grad_norm, rate, num_tokens, metrics, effort)

    def _dealt(self, items: Sequence[Item]) -> list[Share]:
        return deal(
            items,
            num_ranks=self._ranks.size,
            micro_batch=self._algorithm.per_device_train_batch_size,
            max_tokens=self._algorithm.max_tokens_per_micro_batch,
            idle=self._models.idle,
            reaches_all=self._settings.deepspeed.stage == 3,
        )

    def _evaluated(self, model: Model, samples: Sequence[Sample], truncation: Truncation | None) -> list[np.ndarray]:
        """Every rank evaluates its share of the samples."""
        if not samples:
            return []
        items = [Item(sample, targets_of(sample)) for sample in samples]
        shares = self._dealt(items)
        commands = [EvaluateCommand(model, share, truncation or Truncation()) for share in shares]
        with self._told(commands):
            parts = self._evaluate(commands[0])
        found: dict[int, np.ndarray] = {}
        for share, said in zip(shares, parts, strict=True):
            dealt = [item.sample for part in share for item in part]
            ends = np.cumsum([sample.num_completion for sample in dealt])
            for sample, part in zip(dealt, np.split(np.frombuffer(said, dtype=np.float32), ends[:-1]), strict=True):
                found.setdefault(id(sample), part)
        return [found[id(sample)] for sample in samples]

    def _evaluate(self, command: EvaluateCommand) -> list[bytes]:
        """On rank 0 what each rank's share came to, float32."""
        return self._ranks.gather(self._models.evaluate(command))

    def _write(self, command: WriteCommand) -> list[bytes]:
        """On rank 0 what each rank failed with, as the system numbers it; 0: it did not."""
        number = 0
        try:
            with self._folders.written(Path(command.folder)) as folder:
                self._models.write(replace(command, folder=str(folder)))
        except OSError as error:
            number = error.errno or errno.EIO
        return self._ranks.gather(number.to_bytes(4))


@dataclass(frozen=True, eq=False)
class PresentFiles:
    """An `EngineFiles`: the engine's state as it is when it is written."""

    engine: TrainEngine
    whole: bool

    def write(self, folder: Path) -> None:
        self.engine.write(folder, whole=self.whole)
