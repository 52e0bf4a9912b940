"""The optimizer steps of one iteration: shuffled epochs, the next step's samples loaded while the present one trains."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectSendStream

from bus.background import background
from bus.presence import Status
from schemas.ids import PolicyVersion
from schemas.messages import RecordRef
from trainer.augmentations import Augmentation, varied
from trainer.episodes.episode_steps import StepStore
from trainer.items import Item
from trainer.ports import StepResult, TrainingEngine
from trainer.readings import ByStep, Read
from trainer.samples import Sample
from trainer.torch_thread import InThread
from trainer.training_metrics import TrainingMetrics
from trainer.training_order import training_order


@dataclass(frozen=True, slots=True, eq=False)
class OptimizerStep:
    """Before it has targets."""

    epoch: int
    refs: Sequence[RecordRef]
    """All its steps."""
    samples: Sequence[Sample]
    """Of those that are computed, varied."""


MakeItems = Callable[[OptimizerStep], list[Item]]


class Updates:
    """Optimizer steps for whichever learner asks."""

    def __init__(
        self, engine: TrainingEngine, store: StepStore, in_thread: InThread, status: Status, *, num_epochs: int, seed: int
    ) -> None:
        self._engine = engine
        self._store = store
        self._in_thread = in_thread
        self._status = status
        self._num_epochs = num_epochs
        self._seed = seed

    async def run(
        self,
        refs: Sequence[RecordRef],
        make_items: MakeItems,
        version: PolicyVersion,
        step: Callable[[Sequence[Item]], StepResult] | None = None,
        *,
        idle: Collection[RecordRef] = (),
        vary: Augmentation | None = None,
    ) -> TrainingMetrics:
        """Trains on the steps `refs`, `num_train_epochs` times.

        Args:
            step: the policy's if not given.
            idle: of `refs`, those without a gradient: they have their places in the optimizer steps, and are not computed. Of
                an optimizer step of such alone one is, to be made into an item without weight: it moves by its momentum.
            vary: what becomes of a sample, drawn by its place alone.
        """
        metrics = TrainingMetrics()
        steps = self._steps(refs, version, frozenset(idle), vary)
        send, receive = anyio.create_memory_object_stream[list[Item]](1)
        async with receive, background(partial(_load_ahead, steps, make_items, send)):
            async for items in receive:
                result = await self._in_thread(partial(step or self._engine.train, items))
                metrics.add(result, len(items))
                self._status.metrics.update(loss=result.loss, trained=metrics.num_samples)
        return metrics

    async def read(
        self,
        refs: Sequence[RecordRef],
        read: Read,
        version: PolicyVersion,
        *,
        idle: Collection[RecordRef] = (),
        vary: Augmentation | None = None,
    ) -> list[ByStep]:
        """What is read of the very samples that `run` trains on when it is told the same, by epoch."""
        found: list[ByStep] = [{} for _ in range(self._num_epochs)]
        async for step in self._steps(refs, version, frozenset(idle), vary):
            arrays = await self._in_thread(partial(read, step.samples))
            found[step.epoch].update(zip((sample.ref for sample in step.samples), arrays, strict=True))
        return found

    async def _steps(
        self, refs: Sequence[RecordRef], version: PolicyVersion, idle: Collection[RecordRef], vary: Augmentation | None
    ) -> AsyncIterator[OptimizerStep]:
        for epoch in range(self._num_epochs):
            size = self._engine.step_size
            order = training_order(len(refs), size, seed=self._seed, iteration=version, epoch=epoch)
            for number, chosen in enumerate(order):
                together = [refs[index] for index in chosen]
                samples = await self._store.samples([ref for ref in together if ref not in idle] or together[:1])
                if vary is not None:
                    seed = (self._seed, version, epoch, number)
                    samples = await anyio.to_thread.run_sync(partial(varied, samples, vary, seed=seed))
                if samples:
                    yield OptimizerStep(epoch, together, samples)


async def _load_ahead(
    steps: AsyncIterator[OptimizerStep], make_items: MakeItems, send: MemoryObjectSendStream[list[Item]]
) -> None:
    async with send:
        async for step in steps:
            await send.send(make_items(step))
