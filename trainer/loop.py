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
import msgspec
import numpy as np
import structlog

from bus.ports import Bus
from bus.presence import Status
from bus.subjects import Subjects
from schemas.config import EnvConfig, FeederConfig, PolicyConfig
from schemas.errors import TrainingCollapsed
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import Checkpoint
from schemas.training_config import AlgorithmConfig, ObjectiveConfig, TrainerConfig
from trainer.batch_metrics import batch_metrics, token_metrics
from trainer.collapse import CollapseGuard, Health
from trainer.episodes.consumption import BatchPlan, plan_batch
from trainer.episodes.episode_steps import StepRules, StepStore
from trainer.episodes.intake import Judged, open_intake
from trainer.episodes.passes import Passes, Position
from trainer.figures import PhaseClock
from trainer.gate import MismatchGate
from trainer.learners import Learner
from trainer.learners.choice import choose_learner
from trainer.learners.parts import Parts
from trainer.model.adapter_folder import base_of, holds_adapters
from trainer.ports import Builder, EngineFiles, TrainingEngine
from trainer.readings import Readings
from trainer.samples import Sample
from trainer.tracking.log import Tracking
from trainer.truncation import Truncation
from trainer.updates import Updates
from trainer.versions.announcements import Announcements
from trainer.versions.checkpoints import (
    TrainerState,
    folder_of,
    holds_optimizer,
    prune,
    read_trainer_state,
    verify,
    write_checkpoint,
)
from trainer.versions.good_version import GoodVersion
from trainer.versions.retention import Retention
from trainer.versions.weight_publishing import WeightPublisher

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
        tracking: Tracking,
        publisher: WeightPublisher | None = None,
    ) -> None:
        """`rubric`: whose judgements are consumed; `base`: the model that is version 0; `checkpoints`: where versions go;
        `publisher`: stores them on the bus too."""
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
        self._guard = CollapseGuard(trainer, online=feeder.mode != "offline")
        self._announcements = Announcements(bus, subjects, publisher)
        self._batch_size = env.train_tasks_rollout_size
        self._truncation = Truncation(top_k=max(0, policy.top_k), top_p=policy.top_p, min_p=policy.min_p)
        self._base = base.resolve()
        self._root = checkpoints.resolve()
        self._open_engine = open_engine
        self._open_builder = open_builder
        self._tracking = tracking
        self._torch = anyio.CapacityLimiter(1)

    async def run(self) -> None:
        self._status.state = "loading"
        newest = await self._announcements.begin(self._base)
        self._tracking.resume(await self._announcements.all())
        while newest.version < self._feeder.num_iterations:
            async with self._resumed(newest) as iterations:
                newest = await self._serve(iterations)
        self._status.state = "finished"
        _log.info("training_finished", worker=self._worker, version=self._feeder.num_iterations)

    @asynccontextmanager
    async def _resumed(self, newest: Checkpoint) -> AsyncIterator["_Iterations"]:
        folder = folder_of(newest.uri)
        state = TrainerState(version=0, num_trajectories=0, num_updates=0)
        if newest.version > 0:
            await anyio.to_thread.run_sync(verify, folder, newest.files)
            if newest.base is not None:
                base = await self._announcements.announced(newest.base)
                await anyio.to_thread.run_sync(verify, base_of(folder), base.files)
            state = await anyio.to_thread.run_sync(read_trainer_state, folder)
        with ExitStack() as stack:
            opened = self._open_engine(folder, newest.version > 0 and holds_optimizer(folder))
            engine = await anyio.to_thread.run_sync(stack.enter_context, opened, limiter=self._torch)
            engine.rate_factor = state.guard.rate_factor
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
            yield _Iterations(engine=engine, store=store, state=state, learner=learner, newest=newest)

    async def _serve(self, now: "_Iterations") -> Checkpoint:
        """Iterates until training is over or has returned to a good version; returns the newest version."""
        while now.state.version < self._feeder.num_iterations and not now.returned:
            await self._serve_pass(now)
        return now.newest

    async def _serve_pass(self, now: "_Iterations") -> None:
        """Iterates until the pass or the training is over, or training has returned."""
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
            while self._goes_on(now, begun):
                clock = PhaseClock()
                self._status.state = "waiting"
                batch = await intake.batch(
                    now.learner.begin(), lambda count: self._status.metrics.update(collected=count, batch=size)
                )
                clock.end("wait")
                await self._iterate(now, batch, clock)

    def _goes_on(self, now: "_Iterations", begun: Position) -> bool:
        over = now.state.version >= self._feeder.num_iterations or now.state.position.num_passes != begun.num_passes
        return not over and not now.returned

    # training ---------------------------------------------------------------------------------------------------------

    async def _iterate(self, now: "_Iterations", batch: Sequence[Judged], clock: PhaseClock) -> None:
        version, guard = PolicyVersion(now.state.version), now.state.guard
        judgements = [item.judgement for item in batch]
        plan = plan_batch(judgements, version=version, bound=self._feeder.staleness_bound, plays_for=guard.plays_for)
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
        guard = self._guard.judge(guard, Health.of(judgements, guard), version)
        behind = TrainerState(
            version=version + 1,
            position=position,
            num_trajectories=now.state.num_trajectories + len(batch),
            num_updates=now.engine.num_updates,
            guard=guard,
        )
        if self._guard.collapsed(guard):
            await self._return(now, behind, batch, plan, clock)
            return
        ends_pass = position.num_passes > now.state.position.num_passes
        taken = await now.learner.take_in(batch, plan, version, ends_pass=ends_pass)
        clock.end("fetch")
        measured = await self._gate(now, plan, version)
        clock.end("mismatch")
        self._status.state = "training"
        trained = await now.learner.train(version, clock)
        self._status.state = "saving"
        weights = await self._in_thread(now.engine.state)
        state = msgspec.structs.replace(behind, num_updates=now.engine.num_updates)
        state = now.learner.remember(state)
        await self._publish(now, batch, plan.metrics() | trained | measured | taken, clock, state=state, files=weights)

    async def _return(
        self, now: "_Iterations", behind: TrainerState, batch: Sequence[Judged], plan: BatchPlan, clock: PhaseClock
    ) -> None:
        """Publishes the last good version's files as the next version; whoever resumes from that has returned."""
        version, guard = now.state.version, behind.guard
        good = guard.good
        said = {"version": version, "good": good, "parse_rate": plan.parse_rate, "success": plan.success}
        if not self._guard.may_return(guard):
            raise TrainingCollapsed(
                f"training collapsed again (parse rate {plan.parse_rate:.2f}, success {plan.success:.2f}) after "
                f"{guard.num_returns} returns; version {good} was the last good one: begin a new run from its folder with "
                "a lower algorithm_config.learning_rate, or allow more with trainer_config.guard_max_returns"
            )
        _log.error("training_collapsed", **said, batches=guard.num_suspect)
        self._status.state = "saving"
        source = await GoodVersion.read(self._bus, self._subjects, good)
        state = source.state_of(msgspec.structs.replace(behind, guard=self._guard.returned(guard, version)))
        metrics = plan.metrics() | {"guard_returned_to": float(good)}
        await self._publish(now, batch, metrics, clock, state=state, files=source.files, parent=good)
        now.returned = True

    async def _gate(self, now: "_Iterations", plan: BatchPlan, version: PolicyVersion) -> dict[str, float]:
        async def logprobs(samples: Sequence[Sample]) -> list[np.ndarray]:
            return await self._in_thread(lambda: now.engine.completion_logprobs(samples, self._truncation))

        measured = await self._mismatch.measure(plan, version, fetch=now.store.samples, logprobs=logprobs)
        self._status.metrics.update(measured)
        return measured

    async def _publish(
        self,
        now: "_Iterations",
        batch: Sequence[Judged],
        metrics: dict[str, float],
        clock: PhaseClock,
        *,
        state: TrainerState,
        files: EngineFiles,
        parent: int | None = None,
    ) -> None:
        """Writes and announces the version of `state`; its `parent` is the present one, unless given."""
        version, adapted = PolicyVersion(state.version), self._trainer.lora.active
        folder, hashes = await self._in_thread(
            lambda: write_checkpoint(self._root, base=None if adapted else self._base, engine=files, state=state)
        )
        clock.end("save")
        judgements = [item.judgement for item in batch]
        tokens = token_metrics([item.steps.num_tokens for item in batch])
        metrics = batch_metrics(judgements) | tokens | metrics | clock.phases
        checkpoint = Checkpoint(
            run=self._subjects.run,
            version=version,
            uri=folder.as_uri(),
            files=hashes,
            parent=PolicyVersion(now.state.version if parent is None else parent),
            trainer_step=state.num_updates,
            judged_seq=batch[-1].seq,
            num_trajectories=state.num_trajectories,
            metrics=metrics,
            base=PolicyVersion(0) if holds_adapters(folder) else None,
        )
        await self._announcements.announce(checkpoint)
        now.state, now.newest = state, checkpoint
        self._status.metrics.update(version=version, success=metrics["success"], trajectories=state.num_trajectories)
        await self._tracking.trained(version, metrics, judgements)
        _log.info("version_published", version=version, **{key: round(value, 4) for key, value in metrics.items()})
        retention = Retention.of(self._trainer, state.guard.needed)
        await self._in_thread(lambda: prune(self._root, newest=version, retention=retention))

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
    newest: Checkpoint
    returned: bool = False
    """The newest version is not what the engine holds: an earlier one, which training returned to."""
