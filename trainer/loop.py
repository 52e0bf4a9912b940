"""The trainer: judged episodes in, checkpoints out.

Its position on JUDGED, its replay buffer and its counters are inside each checkpoint, and a checkpoint counts once it is
announced (create-only). So after a kill it continues from the newest announced one and consumes every judgement once.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from bus.companions import companions
from bus.ports import Bus, Expect
from bus.presence import Status
from bus.subjects import Subjects
from schemas.config import AlgorithmConfig, EnvConfig, FeederConfig, PolicyConfig, TrainerConfig
from schemas.errors import ChainConflict, TrainerError
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import Checkpoint, Judgement, RecordRef, Split
from trainer.checkpoints import (
    TrainerState,
    folder_of,
    hash_files,
    prune,
    read_trainer_state,
    verify,
    write_checkpoint,
)
from trainer.consumption import BatchPlan, is_success, plan_batch
from trainer.engine import StepResult, TrainEngine
from trainer.episode_steps import EpisodeSteps, StepStore
from trainer.logprobs import Truncation
from trainer.metrics import MetricsLog
from trainer.mismatch import check_mismatch, comparable, mean_mismatch
from trainer.patience import patiently
from trainer.replay import Replay, training_order
from trainer.samples import Sample, SampleBuilder

_PREFETCH = 8
_log = structlog.get_logger()
T = TypeVar("T")

OpenEngine = Callable[[Path, bool], AbstractContextManager[TrainEngine]]
"""Opens the engine on a folder; True: with the optimizer state in it."""


@dataclass(eq=False)
class _Judged:
    """One judgement on its way to training."""

    seq: int
    judgement: Judgement
    steps: EpisodeSteps = field(default_factory=EpisodeSteps)
    ready: anyio.Event = field(default_factory=anyio.Event)


@dataclass
class _Figures:
    """What an iteration adds up while it trains."""

    losses: float = 0.0
    grad_norms: float = 0.0
    learning_rate: float = 0.0
    num_steps: int = 0
    num_tokens: int = 0
    num_samples: int = 0

    def add(self, result: StepResult, num_samples: int) -> None:
        self.losses += result.loss * result.num_tokens
        self.grad_norms += result.grad_norm
        self.learning_rate = result.learning_rate
        self.num_steps += 1
        self.num_tokens += result.num_tokens
        self.num_samples += num_samples

    def metrics(self) -> dict[str, float]:
        if not self.num_steps:
            return {"samples": 0.0, "tokens": 0.0}
        return {
            "loss": self.losses / self.num_tokens,
            "grad_norm": self.grad_norms / self.num_steps,
            "learning_rate": self.learning_rate,
            "samples": float(self.num_samples),
            "tokens": float(self.num_tokens),
            "updates": float(self.num_steps),
        }


class Trainer:
    """Rank 0 of the training job. `run` returns when `feeder_config.num_iterations` versions are published."""

    def __init__(
        self,
        *,
        bus: Bus,
        subjects: Subjects,
        worker: WorkerId,
        status: Status,
        algorithm: AlgorithmConfig,
        trainer: TrainerConfig,
        feeder: FeederConfig,
        env: EnvConfig,
        policy: PolicyConfig,
        base: Path,
        checkpoints: Path,
        open_engine: OpenEngine,
        metrics: MetricsLog,
    ) -> None:
        """`base`: folder of the model that is version 0; `checkpoints`: where versions are written."""
        self._bus = bus
        self._subjects = subjects
        self._worker = worker
        self._status = status
        self._algorithm = algorithm
        self._trainer = trainer
        self._feeder = feeder
        self._batch_size = env.train_tasks_rollout_size
        self._truncation = Truncation(top_k=max(0, policy.top_k), top_p=policy.top_p, min_p=policy.min_p)
        self._base = base.resolve()
        self._root = checkpoints.resolve()
        self._open_engine = open_engine
        self._metrics = metrics
        self._torch = anyio.CapacityLimiter(1)

    async def run(self) -> None:
        self._status.state = "loading"
        newest = await self._newest_checkpoint()
        if newest.version < self._feeder.num_iterations:
            async with self._resumed(newest) as iterations:
                await self._serve(iterations)
        self._status.state = "finished"
        _log.info("training_finished", worker=self._worker, version=self._feeder.num_iterations)

    async def _newest_checkpoint(self) -> Checkpoint:
        """The newest announced version; announces the base model as version 0 when there is none."""
        names = self._subjects
        record = await patiently(lambda: self._bus.last(names.checkpoints, names.everything("checkpoint")))
        if record is not None and isinstance(record.message, Checkpoint):
            return record.message
        files = await anyio.to_thread.run_sync(hash_files, self._base)
        first = Checkpoint(
            run=names.run,
            version=PolicyVersion(0),
            uri=self._base.as_uri(),
            files=files,
            parent=None,
            trainer_step=0,
            judged_seq=0,
        )
        await self._announce(first)
        return first

    async def _announce(self, checkpoint: Checkpoint) -> None:
        subject = self._subjects.checkpoint(checkpoint.version)
        try:
            await patiently(
                lambda: self._bus.append(self._subjects.checkpoints, subject, checkpoint, expect=Expect(subject, 0))
            )
        except ChainConflict as error:
            raise TrainerError(
                f"version {checkpoint.version} of run {self._subjects.run} was announced by another trainer meanwhile: a run "
                "has one trainer; stop one of the two, and this one continues from the newest version when it is started again"
            ) from error

    @asynccontextmanager
    async def _resumed(self, newest: Checkpoint) -> AsyncIterator["_Iterations"]:
        folder = folder_of(newest.uri)
        state = TrainerState(version=0, judged_seq=0, num_trajectories=0, num_updates=0, replay=())
        if newest.version > 0:
            await anyio.to_thread.run_sync(verify, folder, newest.files)
            state = await anyio.to_thread.run_sync(read_trainer_state, folder)
        with ExitStack() as stack:
            opened = self._open_engine(folder, newest.version > 0)
            engine = await anyio.to_thread.run_sync(stack.enter_context, opened, limiter=self._torch)
            builder = await anyio.to_thread.run_sync(
                lambda: SampleBuilder(self._base, cutoff_len=self._algorithm.cutoff_len), limiter=self._torch
            )
            store = StepStore(
                self._bus,
                self._subjects,
                builder,
                cache_bytes=self._trainer.picture_cache_mb * 2**20,
                filter_same_screenshot=self._algorithm.filter_same_screenshot,
            )
            _log.info("training_resumed", version=newest.version, judged_seq=state.judged_seq, folder=str(folder))
            yield _Iterations(engine=engine, store=store, state=state, replay=Replay(self._algorithm, state.replay))

    # reading ----------------------------------------------------------------------------------------------------------

    async def _serve(self, now: "_Iterations") -> None:
        send, receive = anyio.create_memory_object_stream[_Judged](2 * self._batch_size)
        to_fetch, fetch = anyio.create_memory_object_stream[_Judged](2 * self._batch_size)
        reader = partial(self._read, now.state.judged_seq, send, to_fetch)
        fetchers = [partial(self._prefetch, now.store, fetch)] * _PREFETCH
        async with send, receive, to_fetch, fetch, companions(reader, *fetchers):
            while now.state.version < self._feeder.num_iterations:
                began = anyio.current_time()
                batch = await self._collect(receive)
                await self._iterate(now, batch, waited_s=anyio.current_time() - began)

    async def _read(
        self, after_seq: int, send: MemoryObjectSendStream[_Judged], to_fetch: MemoryObjectSendStream[_Judged]
    ) -> None:
        """Reads judged training episodes in the stream's order; successful ones are fetched ahead of their turn."""
        async with self._bus.tail(
            self._subjects.judged, self._subjects.judgements(Split.TRAIN), after_seq=after_seq
        ) as records:
            async for record in records:
                judgement = record.message
                if not isinstance(judgement, Judgement) or judgement.trajectory.task.demonstrate:
                    continue
                item = _Judged(record.seq, judgement)
                if is_success(judgement):
                    await to_fetch.send(item)
                else:
                    item.ready.set()
                await send.send(item)

    async def _prefetch(self, store: StepStore, fetch: MemoryObjectReceiveStream[_Judged]) -> None:
        async for item in fetch:
            item.steps = await store.episode(item.judgement.trajectory)
            item.ready.set()

    async def _collect(self, receive: MemoryObjectReceiveStream[_Judged]) -> list[_Judged]:
        self._status.state = "waiting"
        batch: list[_Judged] = []
        while len(batch) < self._batch_size:
            batch.append(await receive.receive())
            self._status.metrics.update(collected=len(batch), batch=self._batch_size)
        return batch

    # training ---------------------------------------------------------------------------------------------------------

    async def _iterate(self, now: "_Iterations", batch: Sequence[_Judged], *, waited_s: float) -> None:
        version = PolicyVersion(now.state.version)
        clock = _Clock(waited_s)
        plan = plan_batch([item.judgement for item in batch], version=version, bound=self._feeder.staleness_bound)
        _log.info(
            "batch_collected",
            version=version,
            success=round(plan.success, 4),
            staleness={str(age): count for age, count in sorted(plan.histogram.items())},
            staleness_bound=self._feeder.staleness_bound,
            discarded_stale=plan.num_stale,
            unscored=plan.num_unscored,
        )
        left_out = await self._take_in(now, batch, plan)
        clock.phase("fetch_s")
        measured = await self._gate(now, plan, version)
        clock.phase("mismatch_s")
        self._status.state = "training"
        figures = await self._train(now, version)
        clock.phase("train_s")
        self._status.state = "saving"
        metrics = plan.metrics() | figures.metrics() | measured | left_out | clock.phases
        await self._publish(now, judged_seq=batch[-1].seq, num_episodes=len(batch), metrics=metrics, clock=clock)

    async def _take_in(self, now: "_Iterations", batch: Sequence[_Judged], plan: BatchPlan) -> dict[str, float]:
        """Adds the fresh successful episodes' steps to the replay buffer."""
        successful = {judgement.episode for judgement in plan.successes}
        left_out: Counter[str] = Counter()
        usable: list[RecordRef] = []
        for item in batch:
            await item.ready.wait()
            if item.judgement.episode in successful:
                usable.extend(item.steps.usable)
                left_out.update({reason.value: count for reason, count in item.steps.left_out.items()})
        now.replay.add(now.state.version, usable)
        return {"fresh_samples": float(len(usable)), "replay": float(len(now.replay.entries))} | {
            f"left_out_{reason}": float(count) for reason, count in left_out.items() if count
        }

    async def _gate(self, now: "_Iterations", plan: BatchPlan, version: PolicyVersion) -> dict[str, float]:
        """Compares log-probabilities on steps that the present weights sampled; nothing when there are none."""
        samples = await self._comparable(now.store, plan, version)
        if not samples:
            _log.info("mismatch_not_measured", version=version)
            return {}
        trained = await self._in_thread(lambda: now.engine.completion_logprobs(samples, self._truncation))
        mismatch = mean_mismatch(samples, trained)
        check_mismatch(mismatch, bound=self._trainer.max_mismatch, version=version, num_samples=len(samples))
        self._status.metrics["mismatch"] = mismatch
        return {"mismatch": mismatch, "mismatch_samples": float(len(samples))}

    async def _comparable(self, store: StepStore, plan: BatchPlan, version: PolicyVersion) -> list[Sample]:
        """Up to `mismatch_samples` samples of exactly this version; successful episodes first, they are at hand."""
        wanted = self._trainer.mismatch_samples
        refs = [
            ref
            for judgement in sorted(plan.fresh, key=lambda judgement: not is_success(judgement))
            for ref, played in zip(judgement.trajectory.steps, judgement.trajectory.versions, strict=False)
            if played == version
        ]
        found: list[Sample] = []
        for first in range(0, len(refs), max(1, wanted)):
            part = await store.samples(refs[first : first + wanted])
            found.extend(sample for sample in part if comparable(sample, version))
            if len(found) >= wanted:
                break
        return found[:wanted]

    async def _train(self, now: "_Iterations", version: PolicyVersion) -> _Figures:
        figures = _Figures()
        refs = now.replay.draw(self._trainer.seed, version)
        if not refs:
            _log.warning("nothing_to_train_on", version=version)
            return figures
        send, receive = anyio.create_memory_object_stream[list[Sample]](1)
        async with receive, companions(partial(self._load_ahead, now, refs, version, send)):
            async for samples in receive:
                result = await self._in_thread(partial(now.engine.train, samples))
                figures.add(result, len(samples))
                self._status.metrics.update(loss=result.loss, trained=figures.num_samples)
        return figures

    async def _load_ahead(
        self, now: "_Iterations", refs: Sequence[RecordRef], version: PolicyVersion, send: MemoryObjectSendStream[list[Sample]]
    ) -> None:
        """Has the next optimizer step's samples ready while the present one trains."""
        async with send:
            for epoch in range(self._algorithm.num_train_epochs):
                size = now.engine.step_size
                for chosen in training_order(len(refs), size, seed=self._trainer.seed, iteration=version, epoch=epoch):
                    samples = await now.store.samples([refs[index] for index in chosen])
                    if samples:
                        await send.send(samples)

    async def _publish(
        self, now: "_Iterations", *, judged_seq: int, num_episodes: int, metrics: dict[str, float], clock: "_Clock"
    ) -> None:
        version = PolicyVersion(now.state.version + 1)
        state = TrainerState(
            version=version,
            judged_seq=judged_seq,
            num_trajectories=now.state.num_trajectories + num_episodes,
            num_updates=now.engine.num_updates,
            replay=now.replay.entries,
        )
        weights = await self._in_thread(now.engine.state)
        folder, files = await self._in_thread(
            lambda: write_checkpoint(self._root, base=self._base, engine=weights, state=state)
        )
        clock.phase("save_s")
        metrics = metrics | clock.phases
        checkpoint = Checkpoint(
            run=self._subjects.run,
            version=version,
            uri=folder.as_uri(),
            files=files,
            parent=PolicyVersion(now.state.version),
            trainer_step=state.num_updates,
            judged_seq=judged_seq,
            num_trajectories=state.num_trajectories,
            metrics=metrics,
        )
        await self._announce(checkpoint)
        now.state = state
        self._status.metrics.update(version=version, success=metrics["success"], trajectories=state.num_trajectories)
        self._metrics.write(version, metrics)
        _log.info("version_published", version=version, **{key: round(value, 4) for key, value in metrics.items()})
        await self._in_thread(lambda: prune(self._root, newest=version, keep=self._trainer.keep_checkpoints))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Runs torch or disk work beside the event loop, so that heartbeats go on; one at a time."""
        return await anyio.to_thread.run_sync(work, limiter=self._torch)


@dataclass(eq=False)
class _Iterations:
    """What lives from one iteration to the next."""

    engine: TrainEngine
    store: StepStore
    state: TrainerState
    replay: Replay


class _Clock:
    """Seconds by phase."""

    def __init__(self, waited_s: float) -> None:
        self.phases = {"wait_s": waited_s}
        self._last = anyio.current_time()

    def phase(self, name: str) -> None:
        now = anyio.current_time()
        self.phases[name] = now - self._last
        self._last = now
