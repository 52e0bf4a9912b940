"""The feeder: admits episodes within the staleness bound, runs evaluation rounds, and ends the run.

Training tasks whose site is on the blocklist are not admitted; what was queued before is played, and evaluation goes on.

One feeder is active (lease in the bus), any number stand by. What the active one is about to admit it remembers first, on a
stream where nothing ages. Whoever takes over reads that, and of the other streams what came behind it: so nothing is begun
twice and nothing admitted is forgotten, however long ago it was, and a takeover costs the same on every day of a run.
"""

from collections.abc import Sequence
from functools import partial

import anyio
import structlog

from bus.background import background
from bus.bulkhead import Bulkhead
from bus.context import WorkerContext
from bus.following import patient_tail
from bus.lineage import Lineage, catch_up
from bus.ports import Lease
from bus.server_time import ServerClock, server_now
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.ids import PolicyVersion
from schemas.messages import (
    EpisodeCancel,
    EvaluationRound,
    FeederMemory,
    Outcome,
    Role,
    Split,
    Task,
)
from trainer.feeding.admission import Admitter
from trainer.feeding.blocked_sites import TrainingSites
from trainer.feeding.curriculum import (
    Slot,
    evaluation_size,
    evaluation_slots,
    evaluation_versions,
    task_of,
)
from trainer.feeding.evaluation_rounds import EvaluationRounds
from trainer.feeding.recollection import Recollection
from trainer.feeding.stragglers import StragglerClock
from trainer.feeding.task_files import TaskSpec
from trainer.feeding.training_plan import TrainingPlan
from trainer.feeding.upkeep import Upkeep
from trainer.retrying import until_available
from trainer.scores import mean_reward, success_share

_TICK_S = 0.5
_ADMIT_AT_ONCE = 64
_log = structlog.get_logger()


class Feeder:
    """Serves until the run's work is complete, then `run` returns."""

    def __init__(
        self,
        context: WorkerContext,
        config: Config,
        *,
        train_tasks: Sequence[TaskSpec],
        test_tasks: Sequence[TaskSpec],
        clock: ServerClock | None = None,
    ) -> None:
        """May be called in any thread: with many tasks it takes seconds.

        `clock`: which blocks of sites end by.
        """
        feeder = config.feeder_config
        if feeder.mode == "offline":
            raise ConfigurationError("feeder_config.mode is offline: stored episodes are trained on, and no feeder is needed")
        if feeder.mode != "eval" and not train_tasks:
            raise ConfigurationError("there are no training tasks; name a task file in env_config.train_tasks")
        if feeder.mode == "eval" and not test_tasks:
            raise ConfigurationError("there are no test tasks; name a task file in env_config.test_tasks")
        self._bus = context.bus
        self._subjects = context.subjects
        self._rubric = config.bus_config.trained_rubric
        self._clock = clock or ServerClock()
        self._worker = context.worker
        self._status = context.status
        self._bulkhead = Bulkhead(context)
        self._config = feeder
        self._env = config.env_config
        self._test_tasks = tuple(test_tasks)
        self._sites = TrainingSites(train_tasks)
        self._admitter = Admitter(context.bus, context.subjects)
        self._plan = TrainingPlan(feeder, config.env_config, config.objective_config, train_tasks, self._sites.by_task)
        self._begin()

    async def run(self) -> None:
        finished = False
        while not finished:
            self._status.state, self._status.note = "standby", ""
            async with self._bus.lease("feeder", ttl_s=self._config.lease_s) as lease:
                finished = await self._lead(lease)
        self._status.state = "finished"
        _log.info("run_finished", worker=self._worker, admitted=self._state.num_admitted)

    async def _lead(self, lease: Lease) -> bool:
        """Feeds while the lease is held; True when the run's work is complete."""
        self._status.state = "working"
        self._begin()
        finished = False
        with anyio.CancelScope() as self._scope:
            async with background(partial(self._leave_when_lost, lease)):
                await self._resume()
                async with background(*(partial(self._follow, *source) for source in self._sources())):
                    await self._feed()
                    finished = True
        return finished

    def _begin(self) -> None:
        self._state, self._lineage = self._plan.begin(), Lineage()
        self._changed = anyio.Event()
        self._stragglers = StragglerClock(self._env)
        self._recollection = Recollection(
            self._bus, self._subjects, self._plan, self._state, self._sources(), self._bulkhead, self._lineage
        )
        self._upkeep = Upkeep(self._bus, self._subjects, self._admitter, self._state)

    def _sources(self) -> tuple[tuple[str, str], ...]:
        names = self._subjects
        return (
            (names.checkpoints, names.everything("checkpoint")),
            (names.trajectories, names.everything("trajectory", Split.TRAIN.value)),
            (names.judged, names.judgements_by(self._rubric)),
            (names.blocklist, names.everything("blocked")),
            (names.served, names.everything("served")),
            (names.heartbeats, names.everything("heartbeat", Role.POLICY.value)),
        )

    async def _leave_when_lost(self, lease: Lease) -> None:
        await lease.wait_lost()
        _log.warning("lease_lost", lease="feeder")
        self._scope.cancel()

    async def _follow(self, stream: str, subject: str) -> None:
        async with patient_tail(self._bus, stream, subject, after_seq=self._state.sequences.get(stream, 0)) as records:
            async for record in records:
                await self._recollection.take(record)
                self._changed.set()

    async def _resume(self) -> None:
        """Knows what the last feeder knew and what came since, and finishes what it was about to admit."""
        began = anyio.current_time()
        self._clock.heard(await until_available(lambda: server_now(self._bus, self._subjects.blocklist)))
        memory = await self._recollection.take_over()
        self._state.rounds = await self._evaluation_rounds(memory)
        await until_available(lambda: catch_up(self._lineage, self._bus, self._subjects))
        num_records = await self._recollection.catch_up()
        if memory is not None:
            await self._upkeep.finish(memory)
        await self._upkeep.audit()
        seconds = anyio.current_time() - began
        self._status.metrics.update(resume_records=num_records, resume_s=seconds)
        _log.info("feeding_resumed", admitted=self._state.num_admitted, records=num_records, seconds=round(seconds, 3))

    async def _remember(self, tasks: Sequence[Task] | None = None, *, finished: bool = False) -> None:
        """Writes down what is known, and what is intended now; where another feeder leads, nothing happens behind this."""
        known = self._recollection
        if not await (known.write(finished=finished) if tasks is None else known.intend(tasks)):
            _log.warning("lease_lost", lease="feeder")
            self._scope.cancel()
            await anyio.sleep_forever()

    # feeding ----------------------------------------------------------------------------------------------------------

    async def _feed(self) -> None:
        audited_at, judged = anyio.current_time(), 0
        while not await self._advance():
            self._report()
            with anyio.move_on_after(_TICK_S):
                await self._changed.wait()
            self._changed = anyio.Event()
            now, progress = anyio.current_time(), self._state.num_accepted + self._state.num_evaluated
            if self._recollection.is_due:
                await self._remember()
            if progress != judged:
                audited_at, judged = now, progress
            elif now - audited_at > self._config.audit_s:
                # Nothing has ended for a while: make sure that everything admitted is really queued.
                await self._upkeep.audit()
                audited_at = now
        await self._remember(finished=True)
        self._report()

    async def _advance(self) -> bool:
        """Does what can be done now; True when nothing is left to do."""
        await self._evaluate()
        mode = self._config.mode
        if mode == "eval":
            return self._state.rounds.all_complete
        waits = self._config.evaluate_first and mode != "rollout" and not self._state.rounds.is_complete(PolicyVersion(0))
        if not waits:
            await self._train()
        if mode == "sync":
            await self._cancel_stragglers()
        if mode == "rollout":
            return self._state.num_accepted >= self._plan.total
        return self._state.rounds.all_complete and self._state.version >= self._config.num_iterations

    # evaluation -------------------------------------------------------------------------------------------------------

    async def _evaluation_rounds(self, memory: FeederMemory | None) -> EvaluationRounds:
        through, begun = (memory.rounds_through, memory.rounds) if memory is not None else (-1, ())
        rounds = partial(EvaluationRounds, through=through, open_rounds=begun)
        match self._config.mode:
            case "rollout":
                return EvaluationRounds()
            case "eval":
                newest = (await until_available(lambda: catch_up(self._lineage, self._bus, self._subjects))).newest
                version = newest.version if newest else PolicyVersion(0)
                return rounds((version,), waits=False)
            case _:
                return rounds(evaluation_versions(self._config))

    async def _evaluate(self) -> None:
        """Begins the rounds that are due, and reports those that have become complete."""
        rounds = self._state.rounds
        for version in rounds.due(self._state.served(anyio.current_time())):
            rounds.begin(version, evaluation_size(self._test_tasks, self._env))
            _log.info("evaluation_began", version=version)
        for begun in rounds.to_admit():
            slots = evaluation_slots(self._test_tasks, self._env, begun.version)
            for first in range(begun.num_admitted, begun.num_episodes, _ADMIT_AT_ONCE):
                tasks = [self._task(slot, Split.EVAL, begun.version) for slot in slots[first : first + _ADMIT_AT_ONCE]]
                rounds.admit(begun.version, [task.episode for task in tasks])
                await self._admit(tasks)
        for complete in rounds.complete():
            self._report_round(complete)

    # training ---------------------------------------------------------------------------------------------------------

    async def _train(self) -> None:
        left_out = self._sites.left_out(self._state.blocklist, self._clock())
        while True:
            version = self._state.admitting_version(anyio.current_time())
            allowed = self._plan.allowed(version)
            if allowed == 0 or left_out.everything:
                break
            count = min(allowed, _ADMIT_AT_ONCE)
            slots = self._plan.take(count, blocked=left_out.blocks)
            if not slots:
                break
            tasks = [self._task(slot, Split.TRAIN, version) for slot in slots]
            self._state.admit(task.episode for task in tasks)
            await self._admit(tasks)
        note = left_out.sentence() if allowed > 0 and left_out.everything else self._plan.note(version)
        self._status.state, self._status.note = "waiting" if note else "working", note
        self._status.metrics["blocked_sites"] = len(left_out.blocks)

    async def _admit(self, tasks: Sequence[Task]) -> None:
        """Remembers them first: whoever finds that they were intended can tell what became of each."""
        await self._remember(tasks)
        async with anyio.create_task_group() as group:
            for task in tasks:
                group.start_soon(self._admitter.admit, task)

    def _task(self, slot: Slot, split: Split, version: int) -> Task:
        return task_of(
            slot,
            run=self._subjects.run,
            split=split,
            env=self._env,
            feeder=self._config,
            version=PolicyVersion(version),
        )

    async def _cancel_stragglers(self) -> None:
        version, batch = self._state.version, self._env.train_tasks_rollout_size
        missing = self._plan.limit(version) - self._state.num_ended
        ended = batch - missing
        if not self._stragglers.due(ended, anyio.current_time()):
            return
        late = tuple(sorted(self._state.under_way))
        if not late:
            return  # the rest of the batch is not admitted yet: its sites are blocked
        _log.info("stragglers_cancelled", episodes=len(late))
        reason = "its batch was complete and the grace period is over"
        await until_available(lambda: self._bus.tell(self._subjects.cancel, EpisodeCancel(episodes=late, reason=reason)))
        for episode in late:
            if await until_available(partial(self._admitter.end, episode, Outcome.CANCELLED, reason)):
                self._state.end(episode, self._state.sequences.get(self._subjects.trajectories, 0))
            else:
                self._upkeep.give_up([episode], "its chain has aged out")

    def _report(self) -> None:
        state, now = self._state, anyio.current_time()
        limit = self._plan.limit(state.admitting_version(now))
        self._status.metrics.update(
            admitted=state.num_admitted,
            running=state.running,
            accepted=state.num_accepted,
            version=state.version,
            limit=limit,
            eval_episodes=evaluation_size(self._test_tasks, self._env),
        )
        self._note_scores("success", success_share(state.window), "reward", mean_reward(state.window))

    def _report_round(self, complete: EvaluationRound) -> None:
        count = complete.num_scored
        success = complete.num_successes / count if count else None
        reward = complete.total_reward / count if count else None
        version = complete.version
        self._status.metrics["eval_version"] = version
        self._note_scores("eval_success", success, "eval_reward", reward)
        _log.info("evaluation_finished", version=version, episodes=complete.num_episodes, success=success, reward=reward)

    def _note_scores(self, success: str, share: float | None, reward: str, mean: float | None) -> None:
        """Under these names; nothing when there is no score."""
        for name, value in ((success, share), (reward, mean)):
            if value is not None:
                self._status.metrics[name] = value
