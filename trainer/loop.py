"""The trainer: judged episodes in, checkpoints out.

Its position on JUDGED, its replay buffer and its counters are inside each checkpoint, and a checkpoint counts once it is
announced (create-only). So after a kill it continues from the newest announced one and consumes every judgement once: once
altogether online, once a pass over the stored ones offline.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import numpy as np
import structlog

from bus.ports import Bus
from bus.presence import Status
from bus.subjects import Subjects
from schemas.config import EnvConfig, FeederConfig, PolicyConfig
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import Checkpoint
from schemas.training_config import AlgorithmConfig, ObjectiveConfig, TrainerConfig
from trainer.announcements import Announcements
from trainer.checkpoints import (
    TrainerState,
    folder_of,
    prune,
    read_trainer_state,
    verify,
    write_checkpoint,
)
from trainer.consumption import BatchPlan, plan_batch
from trainer.episode_steps import StepRules, StepStore
from trainer.figures import PhaseClock
from trainer.gate import MismatchGate
from trainer.intake import Judged, open_intake
from trainer.learners import Learner
from trainer.learners.choice import choose_learner
from trainer.learners.parts import Parts
from trainer.metrics import MetricsLog
from trainer.passes import Passes, Position
from trainer.ports import Builder, TrainingEngine
from trainer.readings import Readings
from trainer.samples import Sample
from trainer.truncation import Truncation
from trainer.updates import Updates

_log = structlog.get_logger()
T = TypeVar("T")

OpenEngine = Callable[[Path, bool], AbstractContextManager[TrainingEngine]]
"""Opens the engine on a folder; True: with the optimizer state in it."""
OpenBuilder = Callable[[Path], Builder]
"""Makes the builder of samples for the model in a folder."""


class Trainer:
    """Rank 0 of the training job. `run` returns when `feeder_config.num_iterations` versions are published."""

    def __init__(
        self,
        *,
        bus: Bus,
        subjects: Subjects,
        rubric: str,
        worker: WorkerId,
        status: Status,
        algorithm: AlgorithmConfig,
        objective: ObjectiveConfig,
        trainer: TrainerConfig,
        feeder: FeederConfig,
        env: EnvConfig,
        policy: PolicyConfig,
        base: Path,
        checkpoints: Path,
        open_engine: OpenEngine,
        open_builder: OpenBuilder,
        metrics: MetricsLog,
    ) -> None:
        """`rubric`: whose judgements are consumed; `base`: the model that is version 0; `checkpoints`: where versions go."""
        self._bus = bus
        self._subjects = subjects
        self._rubric = rubric
        self._worker = worker
        self._status = status
        self._algorithm = algorithm
        self._objective = objective
        self._trainer = trainer
        self._feeder = feeder
        self._passes = Passes.of(feeder)
        self._mismatch = MismatchGate(trainer, feeder)
        self._announcements = Announcements(bus, subjects)
        self._batch_size = env.train_tasks_rollout_size
        self._truncation = Truncation(top_k=max(0, policy.top_k), top_p=policy.top_p, min_p=policy.min_p)
        self._base = base.resolve()
        self._root = checkpoints.resolve()
        self._open_engine = open_engine
        self._open_builder = open_builder
        self._metrics = metrics
        self._torch = anyio.CapacityLimiter(1)

    async def run(self) -> None:
        self._status.state = "loading"
        newest = await self._announcements.newest() or await self._announcements.announce_base(self._base)
        if newest.version < self._feeder.num_iterations:
            async with self._resumed(newest) as iterations:
                await self._serve(iterations)
        self._status.state = "finished"
        _log.info("training_finished", worker=self._worker, version=self._feeder.num_iterations)

    @asynccontextmanager
    async def _resumed(self, newest: Checkpoint) -> AsyncIterator["_Iterations"]:
        folder = folder_of(newest.uri)
        state = TrainerState(version=0, num_trajectories=0, num_updates=0)
        if newest.version > 0:
            await anyio.to_thread.run_sync(verify, folder, newest.files)
            state = await anyio.to_thread.run_sync(read_trainer_state, folder)
        with ExitStack() as stack:
            opened = self._open_engine(folder, newest.version > 0)
            engine = await anyio.to_thread.run_sync(stack.enter_context, opened, limiter=self._torch)
            builder = await self._in_thread(lambda: self._open_builder(self._base))
            store = StepStore(
                self._bus,
                self._subjects,
                builder,
                cache_bytes=self._trainer.picture_cache_mb * 2**20,
                rules=StepRules.of(self._algorithm, self._objective),
            )
            _log.info("training_resumed", version=newest.version, position=state.position, folder=str(folder))
            updates = Updates(
                engine,
                store,
                self._in_thread,
                self._status,
                num_epochs=self._algorithm.num_train_epochs,
                seed=self._trainer.seed,
            )
            parts = Parts(engine, store, updates, Readings(store, self._in_thread, at_once=engine.step_size))
            learner = choose_learner(
                parts,
                state,
                algorithm=self._algorithm,
                objective=self._objective,
                seed=self._trainer.seed,
                batch_size=self._batch_size,
                staleness_bound=self._feeder.staleness_bound,
                truncation=self._truncation,
            )
            yield _Iterations(engine=engine, store=store, state=state, learner=learner)

    async def _serve(self, now: "_Iterations") -> None:
        while now.state.version < self._feeder.num_iterations:
            await self._serve_pass(now)

    async def _serve_pass(self, now: "_Iterations") -> None:
        """Iterates until the pass or the training is over."""
        size, begun = self._batch_size, now.state.position
        async with open_intake(
            self._bus,
            self._subjects,
            now.store.episode,
            now.learner.wants,
            rubric=self._rubric,
            after_seq=begun.seq,
            ahead=2 * size,
            limit=self._passes.remaining(begun),
        ) as intake:
            while now.state.version < self._feeder.num_iterations and now.state.position.num_passes == begun.num_passes:
                clock = PhaseClock()
                self._status.state = "waiting"
                batch = await intake.batch(
                    now.learner.begin(), lambda count: self._status.metrics.update(collected=count, batch=size)
                )
                clock.end("wait")
                await self._iterate(now, batch, clock)

    # training ---------------------------------------------------------------------------------------------------------

    async def _iterate(self, now: "_Iterations", batch: Sequence[Judged], clock: PhaseClock) -> None:
        version = PolicyVersion(now.state.version)
        plan = plan_batch([item.judgement for item in batch], version=version, bound=self._feeder.staleness_bound)
        _log.info(
            "batch_collected",
            version=version,
            success=round(plan.success, 4),
            reward=round(plan.reward, 4),
            staleness={str(age): count for age, count in sorted((plan.histogram or {}).items())},
            staleness_bound=self._feeder.staleness_bound,
            discarded_stale=plan.num_stale,
            unscored=plan.num_unscored,
        )
        position = self._passes.after(now.state.position, seq=batch[-1].seq, count=len(batch))
        ends_pass = position.num_passes > now.state.position.num_passes
        taken = await now.learner.take_in(batch, plan, version, ends_pass=ends_pass)
        clock.end("fetch")
        measured = await self._gate(now, plan, version)
        clock.end("mismatch")
        self._status.state = "training"
        trained = await now.learner.train(version, clock)
        self._status.state = "saving"
        metrics = plan.metrics() | trained | measured | taken
        await self._publish(now, batch, position, metrics, clock)

    async def _gate(self, now: "_Iterations", plan: BatchPlan, version: PolicyVersion) -> dict[str, float]:
        async def logprobs(samples: Sequence[Sample]) -> list[np.ndarray]:
            return await self._in_thread(lambda: now.engine.completion_logprobs(samples, self._truncation))

        measured = await self._mismatch.measure(plan, version, fetch=now.store.samples, logprobs=logprobs)
        self._status.metrics.update(measured)
        return measured

    async def _publish(
        self, now: "_Iterations", batch: Sequence[Judged], position: Position, metrics: dict[str, float], clock: PhaseClock
    ) -> None:
        version = PolicyVersion(now.state.version + 1)
        state = now.learner.remember(
            TrainerState(
                version=version,
                position=position,
                num_trajectories=now.state.num_trajectories + len(batch),
                num_updates=now.engine.num_updates,
            )
        )
        weights = await self._in_thread(now.engine.state)
        folder, files = await self._in_thread(
            lambda: write_checkpoint(self._root, base=self._base, engine=weights, state=state)
        )
        clock.end("save")
        metrics = metrics | clock.phases
        checkpoint = Checkpoint(
            run=self._subjects.run,
            version=version,
            uri=folder.as_uri(),
            files=files,
            parent=PolicyVersion(now.state.version),
            trainer_step=state.num_updates,
            judged_seq=batch[-1].seq,
            num_trajectories=state.num_trajectories,
            metrics=metrics,
        )
        await self._announcements.announce(checkpoint)
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

    engine: TrainingEngine
    store: StepStore
    state: TrainerState
    learner: Learner
