"""The trainer: judged episodes in, checkpoints out.

Its position on JUDGED, its replay buffer and its counters are inside each checkpoint, and a checkpoint counts once it is
announced (create-only). So after a kill it continues from the newest announced one and consumes every judgement once: once
altogether online, once a pass over the stored ones offline.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio.to_thread
import structlog

from bus.bulkhead import Bulkhead
from bus.context import WorkerContext
from schemas.config import Config
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint
from trainer.augmentations import opened_augmentation
from trainer.collapse import CollapseGuard
from trainer.episodes.episode_steps import StepRules, StepStore
from trainer.episodes.intake import ReadingPlace, open_intake
from trainer.episodes.passes import Passes
from trainer.gate import MismatchGate
from trainer.iterations import IterationRules, Iterations
from trainer.learners import Learner
from trainer.learners.choice import choose_learner
from trainer.learners.parts import LearningRules, Parts
from trainer.learning_rates import LearningRates
from trainer.model.adapter_folder import base_of
from trainer.ports import Builder, TrainingEngine
from trainer.publishing import Publishing
from trainer.readings import Readings
from trainer.torch_thread import TorchThread
from trainer.tracking.log import Tracking
from trainer.training_metrics import PhaseClock
from trainer.truncation import Truncation
from trainer.updates import Updates
from trainer.versions.announcements import Announcements
from trainer.versions.checkpoints import TrainerState, folder_of, holds_optimizer, read_trainer_state, verify
from trainer.versions.saving import Saving
from trainer.versions.weight_publishing import WeightPublisher

_log = structlog.get_logger()

OpenEngine = Callable[[Path, Path | None, int], AbstractContextManager[TrainingEngine]]
"""Opens the engine on a version's folder, with the optimizer state in another or in the same one, behind so many updates."""
OpenBuilder = Callable[[Path], Builder]
"""Makes the builder of samples for the model in a folder."""


class Trainer:
    """Rank 0 of the training job.

    `run` returns when `feeder_config.num_iterations` versions are published, or behind the iteration in which it was drained.
    """

    def __init__(
        self,
        context: WorkerContext,
        config: Config,
        *,
        base: Path,
        checkpoints: Path,
        open_engine: OpenEngine,
        open_builder: OpenBuilder,
        tracking: Tracking,
        publisher: WeightPublisher | None = None,
    ) -> None:
        """`base`: the model that is version 0; `checkpoints`: where versions go;
        `publisher`: stores them on the bus too."""
        trainer, feeder, policy = config.trainer_config, config.feeder_config, config.policy_config
        self._context = context
        self._bus = context.bus
        self._subjects = context.subjects
        self._rubric = config.bus_config.trained_rubric
        self._worker = context.worker
        self._status = context.status
        self._algorithm = config.algorithm_config
        self._objective = config.objective_config
        self._trainer = trainer
        self._feeder = feeder
        self._passes = Passes.of(feeder)
        self._rules = IterationRules(
            passes=self._passes,
            gate=MismatchGate(trainer, feeder),
            guard=CollapseGuard(trainer, online=feeder.mode != "offline"),
            staleness_bound=feeder.staleness_bound,
            truncation=Truncation(top_k=max(0, policy.top_k), top_p=policy.top_p, min_p=policy.min_p),
            saving=Saving(trainer, num_iterations=feeder.num_iterations),
            rates=LearningRates(config.algorithm_config.learning_rate, feeder),
        )
        self._announcements = Announcements(context.bus, context.subjects, publisher)
        self._batch_size = config.env_config.train_tasks_rollout_size
        self._max_new_tokens = policy.max_new_tokens
        self._base = base.resolve()
        self._checkpoints = checkpoints.resolve()
        self._open_engine = open_engine
        self._open_builder = open_builder
        self._tracking = tracking
        self._in_thread = TorchThread()
        self._publishing = Publishing(
            run=context.subjects.run,
            config=trainer,
            base=self._base,
            root=self._checkpoints,
            announcements=self._announcements,
            tracking=tracking,
            status=context.status,
            in_thread=self._in_thread,
        )

    async def run(self) -> None:
        self._status.state = "loading"
        newest = await self._announcements.begin(self._base, self._checkpoints)
        await self._tracking.resume(newest.version, self._announcements.find)
        while newest.version < self._feeder.num_iterations and not self._status.drain.requested:
            newest = await self._served(newest)
        if self._status.drain.requested:
            return
        self._status.state = "finished"
        _log.info("training_finished", worker=self._worker, version=self._feeder.num_iterations)

    # resuming ---------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _resumed(self, newest: Checkpoint) -> AsyncIterator[Iterations]:
        """Opens the engine on the newest version, and everything else as its trainer left it."""
        folder = folder_of(newest.uri)
        state = await self._state_of(newest)
        with ExitStack() as stack:
            opened = self._open_engine(folder, await self._whole_state(newest, state), state.num_updates)
            engine = await self._in_thread(lambda: stack.enter_context(opened))
            parts = await self._parts(engine)
            _log.info("training_opened", version=newest.version, position=state.position, folder=str(folder))
            yield Iterations(
                self._context,
                parts,
                self._learner(parts, state),
                state,
                newest,
                rules=self._rules,
                publishing=self._publishing,
                in_thread=self._in_thread,
            )

    async def _state_of(self, newest: Checkpoint) -> TrainerState:
        """What its trainer knew. Raises `CheckpointCorrupt` when a file of it, or of its base, is not what was announced."""
        if newest.version == 0:
            return TrainerState(version=0, num_trajectories=0, num_updates=0)
        folder = folder_of(newest.uri)
        await anyio.to_thread.run_sync(verify, folder, newest.files)
        if newest.base is not None:
            base = await self._announcements.announced(newest.base)
            await anyio.to_thread.run_sync(verify, base_of(folder), base.files)
        return await anyio.to_thread.run_sync(read_trainer_state, folder)

    async def _whole_state(self, newest: Checkpoint, state: TrainerState) -> Path | None:
        """The folder with the optimizer's state; None: there is none, as before the first update.

        Raises `CheckpointCorrupt` when a file of it is not what was announced.
        """
        if newest.version == 0:
            return None
        if state.whole in (0, newest.version):
            folder = folder_of(newest.uri)
            return folder if holds_optimizer(folder) else None
        whole = await self._announcements.announced(PolicyVersion(state.whole))
        folder = folder_of(whole.uri)
        await anyio.to_thread.run_sync(verify, folder, whole.files)
        _log.info("optimizer_of_an_earlier_version", version=newest.version, optimizer=state.whole)
        return folder

    async def _parts(self, engine: TrainingEngine) -> Parts:
        store = StepStore(
            self._bus,
            self._subjects,
            await self._in_thread(lambda: self._open_builder(self._base)),
            cache_bytes=self._trainer.screenshot_cache_mb * 2**20,
            rules=StepRules.of(self._algorithm, self._objective, stored=self._feeder.mode == "offline"),
            on_surprise=Bulkhead(self._context).left_out,
        )
        updates = Updates(
            engine,
            store,
            self._in_thread,
            self._status,
            num_epochs=self._algorithm.num_train_epochs,
            seed=self._trainer.seed,
        )
        readings = Readings(store, self._in_thread, at_once=engine.step_size)
        return Parts(engine, store, updates, readings, opened_augmentation(self._algorithm.augmentation, self._base))

    def _learner(self, parts: Parts, state: TrainerState) -> Learner:
        return choose_learner(
            parts,
            state,
            algorithm=self._algorithm,
            objective=self._objective,
            rules=LearningRules(
                seed=self._trainer.seed,
                batch_size=self._batch_size,
                staleness_bound=self._feeder.staleness_bound,
                truncation=self._rules.truncation,
                max_new_tokens=self._max_new_tokens,
            ),
        )

    # serving ----------------------------------------------------------------------------------------------------------

    async def _served(self, newest: Checkpoint) -> Checkpoint:
        """Iterates until training is over or has returned to a good version; returns the newest version.

        Nothing of its engine is held then: there is no room for a second one in a GPU's memory.
        """
        async with self._resumed(newest) as iterations:
            while self._goes_on(iterations):
                await self._serve_pass(iterations)
            return iterations.newest

    async def _serve_pass(self, iterations: Iterations) -> None:
        """Iterates until the pass or the training is over, or training has returned."""
        size, begun, learner = self._batch_size, iterations.state.position, iterations.learner
        async with open_intake(
            self._bus,
            self._subjects,
            iterations.store.episode,
            learner.wants,
            rubric=self._rubric,
            place=ReadingPlace(begun.seq, iterations.state.consumed, self._passes.remaining(begun)),
            ahead=2 * size,
        ) as intake:
            while self._goes_on(iterations) and iterations.state.position.num_passes == begun.num_passes:
                clock = PhaseClock()
                self._status.state = "waiting"
                collected = partial(
                    intake.batch, learner.begin(), lambda count: self._status.metrics.update(collected=count, batch=size)
                )
                # What was collected so far is read again by whoever resumes: the position is that of the newest version.
                batch = await self._status.drain.unless(collected)
                if batch is None:
                    return
                clock.end("wait")
                await iterations.run(batch, clock)

    def _goes_on(self, iterations: Iterations) -> bool:
        if self._status.drain.requested:
            return False
        return iterations.state.version < self._feeder.num_iterations and not iterations.returned
