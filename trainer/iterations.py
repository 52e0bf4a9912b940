"""Iterations while one engine is open: each makes the next version of a batch of judgements.

A version is made by training or, where the guard has found a collapse, of the last good one's files: then the engine does not
hold the newest version, and is to be opened anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import structlog

from bus.context import WorkerContext
from schemas.errors import TrainingCollapsed
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint
from trainer.collapse import CollapseGuard, Health
from trainer.episodes.consumption import BatchPlan, plan_batch
from trainer.episodes.episode_steps import StepStore
from trainer.episodes.intake import Judged
from trainer.episodes.passes import NUM_REMEMBERED, Consumed, Passes
from trainer.gate import MismatchGate
from trainer.learners import Learner
from trainer.learners.parts import Parts
from trainer.learning_rates import LearningRates
from trainer.ports import EngineFiles
from trainer.publishing import Publishing
from trainer.samples import Sample
from trainer.torch_thread import InThread
from trainer.training_metrics import PhaseClock
from trainer.truncation import Truncation
from trainer.versions.checkpoints import TrainerState
from trainer.versions.good_version import GoodVersion
from trainer.versions.saving import Saving

_log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class IterationRules:
    """What decides about an iteration, by value."""

    passes: Passes
    gate: MismatchGate
    guard: CollapseGuard
    staleness_bound: int | None
    truncation: Truncation
    saving: Saving
    rates: LearningRates


class Iterations:
    """`state` and `newest` are those of the newest version."""

    def __init__(
        self,
        context: WorkerContext,
        parts: Parts,
        learner: Learner,
        state: TrainerState,
        newest: Checkpoint,
        *,
        rules: IterationRules,
        publishing: Publishing,
        in_thread: InThread,
    ) -> None:
        self.learner = learner
        self.state = state
        self.newest = newest
        self.returned = False
        """The newest version is not what the engine holds: its files are those of an earlier one."""
        self._parts = parts
        self._bus = context.bus
        self._subjects = context.subjects
        self._status = context.status
        self._passes = rules.passes
        self._gate = rules.gate
        self._guard = rules.guard
        self._publishing = publishing
        self._in_thread = in_thread
        self._bound = rules.staleness_bound
        self._truncation = rules.truncation
        self._saving = rules.saving
        self._rates = rules.rates

    @property
    def store(self) -> StepStore:
        return self._parts.store

    async def run(self, batch: Sequence[Judged], clock: PhaseClock) -> None:
        """Publishes the next version.

        Raises:
            MismatchExceeded: sampler and trainer do not hold the same weights, tokens or screenshots.
            TrainingCollapsed: once more than training may return from.
        """
        state, engine = self.state, self._parts.engine
        judgements = [item.judgement for item in batch]
        plan = plan_batch(judgements, version=state.version, bound=self._bound, plays_for=state.guard.plays_for)
        self._say(plan)
        guard = self._guard.judge(state.guard, Health.of(judgements, state.guard), state.version)
        position = self._passes.after(state.position, seq=batch[-1].seq, count=len(batch))
        consumed = (*state.consumed, *(Consumed(item.seq, item.judgement.episode) for item in batch))
        behind = TrainerState(
            version=state.version + 1,
            position=position,
            consumed=consumed[-NUM_REMEMBERED:] if position.num_passes == state.position.num_passes else (),
            num_trajectories=state.num_trajectories + len(batch),
            num_updates=engine.num_updates,
            guard=guard,
        )
        if self._guard.collapsed(guard):
            await self._return(behind, batch, plan, clock)
        else:
            await self._train(behind, batch, plan, clock)

    async def _train(self, behind: TrainerState, batch: Sequence[Judged], plan: BatchPlan, clock: PhaseClock) -> None:
        version, engine = PolicyVersion(self.state.version), self._parts.engine
        ends_pass = behind.position.num_passes > self.state.position.num_passes
        taken = await self.learner.take_in(batch, plan, version, ends_pass=ends_pass)
        clock.end("fetch")
        measured = await self._measure(plan, version)
        clock.end("mismatch")
        self._status.state = "training"
        engine.rate_factor = self.state.guard.rate_factor * self._rates.factor(version)
        trained = await self.learner.train(version, clock)
        self._status.state = "saving"
        leaves = self._status.drain.requested
        whole = self._saving.is_due(behind.version, whole=self.state.whole, leaves=leaves)
        files = engine.files(whole=whole)
        learnt = msgspec.structs.replace(
            behind, num_updates=engine.num_updates, whole=behind.version if whole else self.state.whole
        )
        state = self.learner.remember(learnt)
        metrics = plan.metrics() | trained | measured | taken
        self.newest = await self._publishing.publish(state, files, parent=version, batch=batch, measured=metrics, clock=clock)
        self.state = state

    async def _return(self, behind: TrainerState, batch: Sequence[Judged], plan: BatchPlan, clock: PhaseClock) -> None:
        """Publishes the last good version's files as the next version; whoever resumes from that has returned."""
        version, guard = self.state.version, behind.guard
        good = guard.good
        if not self._guard.may_return(guard):
            raise TrainingCollapsed(
                f"training collapsed again (parse rate {plan.parse_rate:.2f}, success {plan.success:.2f}) after "
                f"{guard.num_returns} returns; version {good} was the last good one: begin a new run from its folder with "
                "a lower algorithm_config.learning_rate, or allow more with trainer_config.guard_max_returns"
            )
        said = {"version": version, "good": good, "parse_rate": plan.parse_rate, "success": plan.success}
        _log.error("training_collapsed", **said, batches=guard.num_suspect)
        self._status.state = "saving"
        source = await GoodVersion.read(self._bus, self._subjects, good)
        present = msgspec.structs.replace(behind, guard=self._guard.returned(guard, version))
        state = source.state_of(self.learner.remember(present))
        metrics = plan.metrics() | {"guard_returned_to": float(good)}
        files = await self._files_of(source)
        self.newest = await self._publishing.publish(state, files, parent=good, batch=batch, measured=metrics, clock=clock)
        self.state, self.returned = state, True

    async def _files_of(self, source: GoodVersion) -> EngineFiles:
        """The good version's; where adapters are trained and that is the base model, some that leave it as it is."""
        if self.newest.base is not None and source.checkpoint.base is None:
            return await self._in_thread(self._parts.engine.fresh_adapters)
        return source.files

    async def _measure(self, plan: BatchPlan, version: PolicyVersion) -> dict[str, float]:
        engine = self._parts.engine

        async def logprobs(samples: Sequence[Sample]) -> list[np.ndarray]:
            return await self._in_thread(lambda: engine.completion_logprobs(samples, self._truncation))

        measured = await self._gate.measure(plan, version, fetch=self.store.samples, logprobs=logprobs)
        self._status.metrics.update(measured)
        return measured

    def _say(self, plan: BatchPlan) -> None:
        _log.info(
            "batch_collected",
            version=self.state.version,
            success=round(plan.success, 4),
            reward=round(plan.reward, 4),
            staleness={str(age): count for age, count in sorted((plan.histogram or {}).items())},
            staleness_bound=self._bound,
            discarded_stale=plan.num_stale,
            unscored=plan.num_unscored,
        )
