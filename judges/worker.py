"""The judge worker: every trajectory gets exactly one judgement, whatever the trajectory or the judge came to."""

import time

import anyio
import structlog

from bus.evidence import Evidence
from bus.ports import Bus, Delivery, Expect, Inbox
from bus.presence import Status
from bus.room import append_when_room
from bus.settlement import settle
from bus.subjects import Subjects
from bus.topology import trajectory_queue
from judges.episode import JudgedEpisode
from judges.judge import Judge, Ruling, excluded, undecided
from schemas.config import BusConfig, EnvConfig, JudgeConfig
from schemas.errors import ChainConflict, JudgeError, MessageCorrupt, MessageTooLarge
from schemas.ids import WorkerId
from schemas.messages import Judgement, Trajectory, Verdict

_log = structlog.get_logger()


class JudgeWorker:
    """Judges trajectories as they end; `evaluation_workers` at a time.

    A failed or cancelled episode is excluded. A judge error is retried by redelivery, and recorded as an error (no reward)
    with the last attempt, so that whoever counts episodes always comes to the number that was admitted.
    """

    def __init__(
        self,
        *,
        bus: Bus,
        subjects: Subjects,
        worker: WorkerId,
        status: Status,
        bus_config: BusConfig,
        env_config: EnvConfig,
        judge_config: JudgeConfig,
        judge: Judge,
    ) -> None:
        self._bus = bus
        self._subjects = subjects
        self._worker = worker
        self._status = status
        self._num_concurrent = env_config.evaluation_workers
        self._config = judge_config
        self._rubric = judge_config.rubric
        self._judge = judge
        self._queue = trajectory_queue(subjects, bus_config, self._rubric)
        self._counts = dict.fromkeys((verdict.value for verdict in Verdict), 0)

    async def run(self) -> None:
        """Serves until cancelled."""
        async with (
            # Nothing waits here unbegun: it would outlast its ack wait, and each delivery counts as an attempt.
            self._bus.work(self._queue, prefetch=0) as inbox,
            anyio.create_task_group() as group,
        ):
            self._status.state = "waiting"
            for _ in range(self._num_concurrent):
                group.start_soon(self._serve, inbox)

    async def _serve(self, inbox: Inbox) -> None:
        async for delivery in inbox:
            async with settle(self._bus, delivery, self._worker):
                await self._handle(delivery)

    async def _handle(self, delivery: Delivery) -> None:
        trajectory = delivery.message
        if not isinstance(trajectory, Trajectory):
            raise MessageCorrupt(f"a {type(trajectory).__name__} where a Trajectory belongs")
        started = time.monotonic()
        ruling = await self._rule(trajectory, last_attempt=delivery.num_delivered >= self._config.max_attempts)
        try:
            await self._publish(trajectory, ruling, time.monotonic() - started)
        except MessageTooLarge as error:
            _log.error("judgement_too_large", episode=trajectory.episode, reason=str(error))
            await self._publish(trajectory, undecided(str(error)), time.monotonic() - started)

    async def _rule(self, trajectory: Trajectory, *, last_attempt: bool) -> Ruling:
        if not trajectory.outcome.finished:
            return excluded(f"{trajectory.outcome.value}: {trajectory.error}")
        try:
            return await self._judge.judge(JudgedEpisode(trajectory, Evidence(self._bus, self._subjects)))
        except JudgeError as error:
            if not last_attempt:
                raise
            _log.error("judge_gave_up", episode=trajectory.episode, reason=str(error))
            return undecided(str(error))

    async def _publish(self, trajectory: Trajectory, ruling: Ruling, seconds: float) -> None:
        task = trajectory.task
        judgement = Judgement(
            episode=task.episode,
            group=task.group,
            split=task.split,
            rubric=self._rubric,
            verdict=ruling.verdict,
            reward=ruling.reward,
            trajectory=trajectory,
            stages=ruling.stages,
            step_rewards=ruling.step_rewards,
            judge=self._worker,
            judged_s=seconds,
            error=ruling.error,
            parts=ruling.parts,
            usage=ruling.usage,
            blocked=ruling.blocked,
        )
        subject = self._subjects.judgement(task.split, self._rubric, task.episode)
        try:
            await append_when_room(self._bus, self._subjects.judged, subject, judgement, expect=Expect(subject, 0))
        except ChainConflict:
            _log.info("judged_before", episode=task.episode)
            return
        self._counts[ruling.verdict.value] += 1
        self._status.metrics.update({verdict: float(count) for verdict, count in self._counts.items()})
