"""The judge worker: every trajectory gets exactly one judgement, whatever the trajectory or the judge came to."""

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

import anyio
import structlog

from bus.blocklist import block
from bus.bulkhead import Bulkhead
from bus.context import WorkerContext
from bus.creation import create
from bus.evidence import Evidence
from bus.fault import Fault
from bus.ports import Delivery, Inbox
from bus.server_time import age_s
from bus.settlement import item_of, retry_delay_s, settle
from bus.stored import newest
from bus.topology import trajectory_queue
from judges.attempts import rule
from judges.episode import JudgedEpisode
from judges.judge import Judge, Ruling, excluded, undecided, unreadable
from judges.shaping import shape
from schemas.config import Config
from schemas.errors import BusUnavailable, Disposition, MessageCorrupt, MessageTooLarge, ToldToLeave
from schemas.messages import Judgement, Outcome, Trajectory, Verdict
from schemas.site import site_of

_log = structlog.get_logger()
_MOST_DELIVERIES = 25
"""A trajectory that was delivered so often ends the workers that judge it: stops and kills alone do not come to that."""
_ERROR_LIMIT = 1_000
"""Characters of an error that has to fit into any message."""


class JudgeWorker:
    """Judges trajectories as they end; `evaluation_workers` at a time.

    An episode that did not finish is excluded. Where no verdict can be had there is an error (no reward), so that whoever
    counts episodes always comes to the number that was admitted. A site that blocked the agent is on the blocklist before
    the judgement which says so stands.
    """

    def __init__(
        self,
        context: WorkerContext,
        config: Config,
        judge: Judge,
    ) -> None:
        self._bus = context.bus
        self._subjects = context.subjects
        self._worker = context.worker
        self._status = context.status
        self._num_concurrent = config.env_config.evaluation_workers
        self._config = config.judge_config
        self._rubric = config.judge_config.rubric
        self._judge = judge
        self._bulkhead = Bulkhead(context, scope=self._rubric)
        self._queue = trajectory_queue(context.subjects, config.bus_config, self._rubric)
        self._counts = dict.fromkeys((verdict.value for verdict in Verdict), 0)

    async def run(self) -> None:
        """Serves until it is cancelled, or drained: then what it judges is judged to its end, unless the run is paused."""
        async with (
            # Nothing waits here unbegun: it would outlast its ack wait, and other workers could have begun it.
            self._bus.work(self._queue, prefetch=0) as inbox,
            anyio.create_task_group() as group,
        ):
            self._status.metrics |= {"slots": float(self._num_concurrent), "busy": 0.0}
            self._status.state = "waiting"
            for _ in range(self._num_concurrent):
                group.start_soon(self._serve, inbox)

    async def _serve(self, inbox: Inbox) -> None:
        while (delivery := await self._status.drain.unless(partial(anext, inbox))) is not None:
            with self._busy(), suppress(ToldToLeave):
                on_reject = partial(self._give_up, delivery)
                async with settle(self._bus, delivery, self._worker, bulkhead=self._bulkhead, on_reject=on_reject):
                    await self._outlast(delivery)

    @contextmanager
    def _busy(self) -> Iterator[None]:
        """Counts a slot; a judge that is paused says that instead."""
        status = self._status
        status.metrics["busy"] += 1
        if status.state == "waiting":
            status.state = "working"
        try:
            yield
        finally:
            status.metrics["busy"] -= 1
            if status.state == "working" and not status.metrics["busy"]:
                status.state = "waiting"

    async def _outlast(self, delivery: Delivery) -> None:
        """Handles a delivery once the bus is there. To have it delivered again meanwhile would only make it look like one that
        ends its workers."""
        for num_tried in itertools.count(1):
            try:
                await self._handle(delivery)
                break
            except BusUnavailable as error:
                delay_s = retry_delay_s(num_tried)
                _log.warning("judging_waits_for_bus", seq=delivery.seq, reason=str(error), delay_s=delay_s)
            await anyio.sleep(delay_s)

    async def _give_up(self, delivery: Delivery, reason: str) -> bool:
        """What cannot be judged here or anywhere is an error without a reward."""
        try:
            trajectory = delivery.message
        except MessageCorrupt:
            return False
        if not isinstance(trajectory, Trajectory):
            return False
        await self._publish(trajectory, undecided(reason), 0.0)
        return True

    async def _handle(self, delivery: Delivery) -> None:
        trajectory = delivery.message
        if not isinstance(trajectory, Trajectory):
            raise MessageCorrupt(f"a {type(trajectory).__name__} where a Trajectory belongs")
        if await self._is_judged(trajectory):
            _log.info("judged_before", episode=trajectory.episode)
            return
        started = time.monotonic()
        episode = JudgedEpisode(trajectory, Evidence(self._bus, self._subjects))
        ruling = await self._rule(episode, delivery.num_delivered)
        if ruling.blocked:
            await self._block(trajectory, delivery)
        seconds = time.monotonic() - started
        try:
            await self._publish(trajectory, ruling, seconds)
        except (MessageTooLarge, MessageCorrupt) as error:
            _log.error("judgement_unwritable", episode=trajectory.episode, reason=str(error))
            plain = replace(undecided(str(error)[:_ERROR_LIMIT]), blocked=ruling.blocked)
            try:
                await self._publish(trajectory, replace(plain, usage=ruling.usage), seconds)
            except (MessageTooLarge, MessageCorrupt):
                await self._publish(trajectory, plain, seconds)
        await self._tell(episode.surprises, item_of(delivery))

    async def _tell(self, surprises: Sequence[Exception], item: str) -> None:
        """What a judge raised is told once a trajectory, however often it was asked.

        Raises:
            WorkerFailing: one trajectory after the other met the same; this one is judged.
        """
        for surprise in {Fault.of(error): error for error in surprises}.values():
            failure = await self._bulkhead.met(surprise, item)
            if failure.disposition is Disposition.FATAL:
                raise failure

    async def _rule(self, episode: JudgedEpisode, num_delivered: int) -> Ruling:
        trajectory = episode.trajectory
        if not trajectory.outcome.finished:
            reason = f"{trajectory.outcome.value}: {trajectory.error}"
            return replace(excluded(reason), blocked=trajectory.outcome is Outcome.BLOCKED)
        if trajectory.outcome is Outcome.UNREADABLE:
            return await shape(unreadable(trajectory), episode, self._config.shaping)
        if num_delivered >= _MOST_DELIVERIES:
            _log.error("judging_ends_workers", episode=trajectory.episode, delivered=num_delivered)
            return undecided(f"delivered {num_delivered} times and never judged: it seems to end the workers that judge it")
        ruling = await rule(self._judge, episode, max_attempts=self._config.max_attempts)
        return await shape(ruling, episode, self._config.shaping)

    async def _block(self, trajectory: Trajectory, delivery: Delivery) -> None:
        """May be done again by a worker that takes the trajectory over: the newest word on a site counts.

        The time begins when the server stored the episode's end: who judges an old one says nothing about the site today, nor
        does one that was replayed from another run, of which the server does not know when it was played.
        """
        site, hours = site_of(trajectory.task.website), _hours(trajectory, self._config.blocklist_hours)
        hours -= await age_s(self._bus, delivery.stream, delivery.seq) / 3600.0
        if hours > 0 and trajectory.task.run == self._subjects.run:
            reason = trajectory.error or f"{self._rubric} found that it blocked the agent"
            await block(self._bus, self._subjects, site, hours=hours, reason=reason, episode=trajectory.episode)
            _log.warning("site_blocked", site=site, hours=round(hours, 2), episode=trajectory.episode)

    async def _publish(self, trajectory: Trajectory, ruling: Ruling, seconds: float) -> None:
        """Raises `MessageTooLarge` or `MessageCorrupt` when no reader could read it."""
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
            protocols=ruling.protocols,
        )
        if await create(self._bus, self._subjects.judged, self._subject(trajectory), judgement) is None:
            _log.info("judged_before", episode=task.episode)
            return
        self._counts[ruling.verdict.value] += 1
        self._status.metrics.update({verdict: float(count) for verdict, count in self._counts.items()})

    async def _is_judged(self, trajectory: Trajectory) -> bool:
        """Behind what is no judgement, ours is created."""
        return await newest(self._bus, self._subjects.judged, self._subject(trajectory)) is not None

    def _subject(self, trajectory: Trajectory) -> str:
        return self._subjects.judgement(trajectory.task.split, self._rubric, trajectory.episode)


def _hours(trajectory: Trajectory, most: float) -> float:
    """For which a site is left out: as long as it asked for itself, where that is shorter than `most`."""
    asked_s = max((met.retry_after_s for met in trajectory.blockages if not met.elsewhere and not met.lifted), default=0.0)
    return min(most, asked_s / 3600.0) if asked_s else most
