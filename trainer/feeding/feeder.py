"""The feeder: admits episodes within the staleness bound, runs evaluation rounds, and ends the run.

Training tasks whose site is on the blocklist are not admitted; what was queued before is played, and evaluation goes on.

One feeder is active (lease in the bus), any number stand by. Whoever takes over rebuilds everything from the streams: an
episode is admitted by the first record of its chain, so nothing is admitted twice and nothing admitted is forgotten.
"""

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial

import anyio
import structlog

from bus.blocklist import read_blocklist
from bus.companions import companions
from bus.lineage import Lineage, catch_up
from bus.ports import Bus, Lease
from bus.presence import Status
from bus.subjects import Subjects
from schemas.env_config import EnvConfig
from schemas.errors import ConfigurationError
from schemas.feeder_config import FeederConfig
from schemas.ids import EpisodeId, PolicyVersion, WorkerId
from schemas.messages import Checkpoint, EpisodeCancel, Outcome, Role, Split, Task
from schemas.objective_config import ObjectiveConfig
from trainer.feeding.admission import Admitter
from trainer.feeding.blocked_sites import TrainingSites
from trainer.feeding.curriculum import (
    Slot,
    evaluation_slots,
    evaluation_versions,
    task_of,
)
from trainer.feeding.evaluation_rounds import EvaluationRounds
from trainer.feeding.stragglers import StragglerClock
from trainer.feeding.task_files import TaskSpec
from trainer.feeding.training_plan import TrainingPlan
from trainer.patience import patiently
from trainer.scores import Score, mean_reward, success_share

_TICK_S = 0.5
_AUDIT_S = 60.0
_ADMIT_AT_ONCE = 64
_log = structlog.get_logger()


class Feeder:
    """Serves until the run's work is complete, then `run` returns."""

    def __init__(
        self,
        *,
        bus: Bus,
        subjects: Subjects,
        rubric: str,
        worker: WorkerId,
        status: Status,
        feeder: FeederConfig,
        env: EnvConfig,
        objective: ObjectiveConfig,
        train_tasks: Sequence[TaskSpec],
        test_tasks: Sequence[TaskSpec],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`rubric`: whose judgements count; `clock`: unix seconds, which blocks of sites end by."""
        if feeder.mode == "offline":
            raise ConfigurationError("feeder_config.mode is offline: stored episodes are trained on, and no feeder is needed")
        if feeder.mode != "eval" and not train_tasks:
            raise ConfigurationError("there are no training tasks; name a task file in env_config.train_tasks")
        if feeder.mode == "eval" and not test_tasks:
            raise ConfigurationError("there are no test tasks; name a task file in env_config.test_tasks")
        self._bus = bus
        self._subjects = subjects
        self._rubric = rubric
        self._clock = clock
        self._worker = worker
        self._status = status
        self._config = feeder
        self._env = env
        self._test_tasks = tuple(test_tasks)
        self._sites = TrainingSites(train_tasks)
        self._admitter = Admitter(bus, subjects)
        self._plan = TrainingPlan(feeder, env, objective, train_tasks, self._sites.by_task)
        self._state, self._lineage = self._plan.begin(), Lineage()
        self._changed = anyio.Event()
        self._known: set[EpisodeId] = set()
        self._rounds = EvaluationRounds(())
        self._stragglers = StragglerClock(env)

    async def run(self) -> None:
        finished = False
        while not finished:
            self._status.state, self._status.note = "standby", ""
            async with self._bus.lease("feeder", ttl_s=self._config.lease_s) as lease:
                finished = await self._lead(lease)
        self._status.state = "finished"
        _log.info("feeding_finished", worker=self._worker, admitted=len(self._state.admitted))

    async def _lead(self, lease: Lease) -> bool:
        """Feeds while the lease is held; True when the run's work is complete."""
        self._status.state = "working"
        self._begin()
        finished = False
        followers = [partial(self._follow, stream, subject) for stream, subject in self._sources()]
        with anyio.CancelScope() as scope:
            async with companions(partial(self._leave_when_lost, lease, scope), *followers):
                await self._feed()
                finished = True
        return finished

    def _begin(self) -> None:
        self._state, self._lineage = self._plan.begin(), Lineage()
        self._changed = anyio.Event()
        self._stragglers = StragglerClock(self._env)

    def _sources(self) -> tuple[tuple[str, str], ...]:
        names = self._subjects
        return (
            (names.checkpoints, names.everything("checkpoint")),
            (names.trajectories, names.everything("trajectory", Split.TRAIN.value)),
            (names.judged, names.judgements_by(self._rubric)),
            (names.blocklist, names.everything("blocked")),
            (names.heartbeats, names.everything("heartbeat", Role.POLICY.value)),
        )

    @staticmethod
    async def _leave_when_lost(lease: Lease, scope: anyio.CancelScope) -> None:
        await lease.wait_lost()
        _log.warning("lease_lost", lease="feeder")
        scope.cancel()

    async def _follow(self, stream: str, subject: str) -> None:
        async with self._bus.tail(stream, subject) as records:
            async for record in records:
                if not isinstance(record.message, Checkpoint) or self._lineage.takes(record):
                    self._state.apply(record.message, anyio.current_time(), record.seq)
                    self._changed.set()

    async def _feed(self) -> None:
        self._state.catch_up(await patiently(lambda: read_blocklist(self._bus, self._subjects)))
        await self._audit()
        await self._resume()
        self._rounds = await self._evaluation_rounds()
        audited_at, judged = anyio.current_time(), 0
        while not await self._advance():
            self._report()
            with anyio.move_on_after(_TICK_S):
                await self._changed.wait()
            self._changed = anyio.Event()
            now, progress = anyio.current_time(), len(self._state.accepted) + len(self._state.evaluated)
            if progress != judged:
                audited_at, judged = now, progress
            elif now - audited_at > _AUDIT_S:
                # Nothing has ended for a while: make sure that everything admitted is really queued.
                await self._audit()
                audited_at = now
        self._report()

    async def _resume(self) -> None:
        """Goes to where the last feeder stood; where results decide, with all results that it may have known."""
        seqs: dict[int, int] = {}
        if self._plan.adapts:
            names = self._subjects
            judged = names.judgements_by(self._rubric, Split.TRAIN)
            for record in await patiently(lambda: self._bus.history(names.judged, judged)):
                self._state.apply(record.message, anyio.current_time(), record.seq)
            seqs = await self._admitter.results_seqs(self._state.admitted)
        self._plan.resume(seqs)

    async def _audit(self) -> None:
        self._known = await patiently(self._admitter.repair)
        own = "demo-" if self._config.demonstrate else "train-"
        self._state.admitted.update(episode for episode in self._known if episode.startswith(own))

    async def _advance(self) -> bool:
        """Does what can be done now; True when nothing is left to do."""
        await self._evaluate()
        mode = self._config.mode
        if mode == "eval":
            return self._rounds.all_complete
        waits = self._config.evaluate_first and mode != "rollout" and not self._rounds.is_complete(PolicyVersion(0))
        if not waits:
            await self._train()
        if mode == "sync":
            await self._cancel_stragglers()
        if mode == "rollout":
            return len(self._state.accepted) >= self._plan.total
        return self._rounds.all_complete and self._state.version >= self._config.num_iterations

    # evaluation -------------------------------------------------------------------------------------------------------

    async def _evaluation_rounds(self) -> EvaluationRounds:
        match self._config.mode:
            case "rollout":
                return EvaluationRounds(())
            case "eval":
                newest = (await patiently(lambda: catch_up(Lineage(), self._bus, self._subjects))).newest
                version = newest.version if newest else PolicyVersion(0)
                return EvaluationRounds((version,), waits=False)
            case _:
                return EvaluationRounds(evaluation_versions(self._config))

    async def _evaluate(self) -> None:
        """Begins the rounds that are due, and reports those that have become complete."""
        for version in self._rounds.due(self._state.served(anyio.current_time())):
            slots = evaluation_slots(self._test_tasks, self._env, version)
            self._rounds.begin(version, await self._admit(slots, Split.EVAL))
            _log.info("evaluation_began", version=version, episodes=len(slots))
        for version, episodes in self._rounds.complete(self._state.unfinished).items():
            self._report_round(version, episodes)

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
            self._state.admitted.update(await self._admit(slots, Split.TRAIN))
        note = left_out.sentence() if allowed > 0 and left_out.everything else self._plan.note(version)
        self._status.state, self._status.note = "waiting" if note else "working", note
        self._status.metrics["blocked_sites"] = len(left_out.blocks)

    async def _admit(self, slots: Sequence[Slot], split: Split) -> list[EpisodeId]:
        tasks = [self._task(slot, split) for slot in slots]
        fresh = [task for task in tasks if task.episode not in self._known]
        for first in range(0, len(fresh), _ADMIT_AT_ONCE):
            async with anyio.create_task_group() as group:
                for task in fresh[first : first + _ADMIT_AT_ONCE]:
                    group.start_soon(self._admitter.admit, task)
        self._known.update(task.episode for task in fresh)
        return [task.episode for task in tasks]

    def _task(self, slot: Slot, split: Split) -> Task:
        return task_of(
            slot,
            run=self._subjects.run,
            split=split,
            env=self._env,
            version=PolicyVersion(self._state.version),
            demonstrate=self._config.demonstrate,
        )

    async def _cancel_stragglers(self) -> None:
        version, batch = self._state.version, self._env.train_tasks_rollout_size
        missing = self._plan.limit(version) - len(self._state.ended)
        ended = batch - missing
        if not self._stragglers.due(ended, anyio.current_time()):
            return
        late = tuple(sorted(self._state.admitted - self._state.ended))
        if not late:
            return  # the rest of the batch is not admitted yet: its sites are blocked
        _log.info("stragglers_cancelled", episodes=len(late))
        reason = "its batch was complete and the grace period is over"
        await patiently(lambda: self._bus.tell(self._subjects.cancel, EpisodeCancel(episodes=late, reason=reason)))
        for episode in late:
            await patiently(partial(self._admitter.end, episode, Outcome.CANCELLED, reason))
            self._state.ended.add(episode)

    def _report(self) -> None:
        state, now = self._state, anyio.current_time()
        limit = self._plan.limit(state.admitting_version(now))
        self._status.metrics.update(
            admitted=len(state.admitted),
            running=state.running,
            accepted=len(state.accepted),
            version=state.version,
            limit=limit,
        )
        self._note_scores(state.window, "success", "reward")

    def _report_round(self, version: PolicyVersion, episodes: Collection[EpisodeId]) -> None:
        scores = self._state.scores(episodes)
        self._note_scores(scores, f"eval_success_v{version}", f"eval_reward_v{version}")
        figures = {"success": success_share(scores), "reward": mean_reward(scores)}
        _log.info("evaluation_finished", version=version, episodes=len(episodes), **figures)

    def _note_scores(self, scores: Collection[Score], success: str, reward: str) -> None:
        """Under these names; nothing when there is no score."""
        for name, value in ((success, success_share(scores)), (reward, mean_reward(scores))):
            if value is not None:
                self._status.metrics[name] = value
