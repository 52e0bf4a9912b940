"""The optimizer steps of one iteration: shuffled epochs, the next step's samples loaded while the present one trains."""

from collections.abc import Callable, Sequence
from functools import partial

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from bus.background import background
from bus.presence import Status
from schemas.ids import PolicyVersion
from schemas.messages import RecordRef
from trainer.episodes.episode_steps import StepStore
from trainer.items import Item
from trainer.ports import StepResult, TrainingEngine
from trainer.samples import Sample
from trainer.torch_thread import InThread
from trainer.training_metrics import TrainingMetrics
from trainer.training_order import training_order

MakeItems = Callable[[Sequence[Sample]], list[Item]]
"""What the samples of one optimizer step are trained towards."""


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
    ) -> TrainingMetrics:
        """Trains on the steps `refs`, `num_train_epochs` times; `step`: the policy's if not given."""
        metrics = TrainingMetrics()
        send, receive = anyio.create_memory_object_stream[list[Item]](1)
        async with receive, background(partial(self._load_ahead, refs, make_items, version, send)):
            async for items in receive:
                result = await self._in_thread(partial(step or self._engine.train, items))
                metrics.add(result, len(items))
                self._status.metrics.update(loss=result.loss, trained=metrics.num_samples)
        return metrics

    async def _load_ahead(
        self,
        refs: Sequence[RecordRef],
        make_items: MakeItems,
        version: PolicyVersion,
        send: MemoryObjectSendStream[list[Item]],
    ) -> None:
        async with send:
            for epoch in range(self._num_epochs):
                size = self._engine.step_size
                for chosen in training_order(len(refs), size, seed=self._seed, iteration=version, epoch=epoch):
                    samples = await self._store.samples([refs[index] for index in chosen])
                    if samples:
                        await send.send(make_items(samples))
