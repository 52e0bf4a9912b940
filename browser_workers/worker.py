"""The browser worker: a fixed number of slots, each a serial loop that takes a task, plays it, and puts the trajectory out.

Invariant: a task is acknowledged only after its trajectory stands on the chain and on TRAJECTORIES.
"""

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import anyio
import structlog

from browser_workers.blockages.hook import Hook
from browser_workers.browser import Browser, Opening
from browser_workers.episode import Finish
from browser_workers.har.log import NetworkLog
from browser_workers.intake import Intake
from browser_workers.play import Play
from browser_workers.providers.reachable import require_reachable
from browser_workers.suites import Suite, UnknownWebsite, resolve
from browser_workers.visit import Visit
from bus import chain as chains
from bus.background import background
from bus.bulkhead import Bulkhead
from bus.chain import EpisodeChain, publish_trajectory
from bus.context import WorkerContext
from bus.fault import unforeseen
from bus.ports import Delivery, Record
from bus.settlement import item_of, settle
from bus.topology import task_queue
from bus.turns import Turns
from schemas.config import Config
from schemas.errors import Disposition, MessageCorrupt
from schemas.ids import EpisodeId
from schemas.messages import Blockage, EpisodeCancel, Outcome, Split, Task, Trajectory

_log = structlog.get_logger()


class BrowserWorker:
    """`run` serves until it is cancelled, and hands every task back; or drained, and plays what it holds to its end."""

    def __init__(
        self,
        context: WorkerContext,
        config: Config,
        *,
        browser: Browser,
        suites: Mapping[str, Suite],
    ) -> None:
        self._bus = context.bus
        self._subjects = context.subjects
        self._worker = context.worker
        self._status = context.status
        self._bus_config = config.bus_config
        self._env_config = config.env_config
        self._resend_s = config.browser_config.resend_s
        self._eval_share = config.browser_config.eval_share
        self._browser_config = config.browser_config
        self._browser = browser
        self._suites = suites
        browsers = config.browser_config
        self._num_block_retries = browsers.block_retries if browsers.on_block == "other_identity" else 0
        self._hook = Hook.of(browsers)
        self._turns = Turns(context, patience_s=browsers.site_wait_s) if browsers.site_limits else None
        self._bulkhead = Bulkhead(context)
        self._playing: dict[EpisodeId, tuple[anyio.CancelScope, list[str]]] = {}
        """What cancels each episode under way, and where the reason is put."""

    async def run(self) -> None:
        queues = {split: task_queue(self._subjects, self._bus_config, split) for split in Split}
        async with (
            self._bus.listen(self._subjects.cancel) as cancellations,
            self._bus.work(queues[Split.TRAIN], prefetch=0) as train,
            self._bus.work(queues[Split.EVAL], prefetch=0) as evaluation,
            background(partial(self._hear_cancellations, cancellations)),
            anyio.create_task_group() as group,
        ):
            intake = Intake(train, evaluation, eval_share=self._eval_share)
            for _ in range(self._env_config.server_size):
                group.start_soon(self._serve, intake)
            self._status.metrics["slots"] = float(self._env_config.server_size)
            self._status.state = "waiting"

    async def _serve(self, intake: Intake) -> None:
        while (delivery := await self._status.drain.unless(intake.next)) is not None:
            with self._active():
                on_reject = partial(self._give_up, delivery)
                async with settle(self._bus, delivery, self._worker, bulkhead=self._bulkhead, on_reject=on_reject):
                    await self._handle(delivery)

    async def _handle(self, delivery: Delivery) -> None:
        task = delivery.message
        if not isinstance(task, Task):
            raise MessageCorrupt(f"a task was expected, not {type(task).__name__}")
        met: list[Blockage] = []
        for num_left in range(self._num_block_retries, -1, -1):
            chain = await EpisodeChain.take(self._bus, self._subjects, task, self._worker)
            if isinstance(chain, Trajectory):
                await publish_trajectory(self._bus, self._subjects, chain)
                return
            with structlog.contextvars.bound_contextvars(episode=task.episode, attempt=chain.attempt):
                trajectory = await self._play(chain, item_of(delivery), met, comes_again=num_left > 0)
                if trajectory is not None:
                    await publish_trajectory(self._bus, self._subjects, trajectory)
                    self._count(trajectory)
                    return

    async def _give_up(self, delivery: Delivery, reason: str) -> bool:
        """Ends an episode that cannot be played here or anywhere, with the steps it has."""
        try:
            task = delivery.message
        except MessageCorrupt:
            return False
        if not isinstance(task, Task):
            return False
        ended = await chains.cancel(self._bus, self._subjects, task, Outcome.FAILED, reason, time.time())
        await publish_trajectory(self._bus, self._subjects, ended)
        self._count(ended)
        return True

    async def _play(self, chain: EpisodeChain, item: str, met: list[Blockage], *, comes_again: bool) -> Trajectory | None:
        """How the attempt ended; a task that cannot be played ends as failed, with the reason.

        None: it was blocked, and another one may come by another egress, for which `comes_again` allows.
        """
        max_attempts = self._env_config.max_retries + 1 + self._num_block_retries
        play = Play(
            bus=self._bus,
            subjects=self._subjects,
            chain=chain,
            worker=self._worker,
            resend_s=self._resend_s,
            max_attempts=max_attempts,
            on_step=lambda: self._add("steps_taken", 1),
            visit=Visit(
                self._hook,
                NetworkLog.of(self._browser_config, chain.task),
                met,
                self._turns,
                self._browser_config.site_limits,
            ),
        )
        if chain.attempt > max_attempts:
            return await play.end(Finish(Outcome.FAILED, error=f"begun {max_attempts} times and never ended"))
        with self._cancellable(chain.task.episode) as (scope, reasons):
            try:
                finish = await play.run(self._browser, self._opening(chain.task.website))
            except UnknownWebsite as error:
                finish = Finish(Outcome.FAILED, error=str(error))
            except Exception as error:  # noqa: BLE001 - a bulkhead
                finish = await self._failed(play, error, item)
        if scope.cancelled_caught:
            finish = Finish(Outcome.CANCELLED, error="; ".join(reasons))
        elif comes_again and play.has_other_egress:
            self._add("other_identities", 1)
            _log.info("blocked_comes_otherwise", reason=finish.error)
            return None
        return await play.end(finish)

    def _opening(self, website: str) -> Opening:
        """Raises `UnknownWebsite`."""
        opening = resolve(website, self._suites)
        require_reachable(opening, self._browser_config)
        return opening

    async def _failed(self, play: Play, error: Exception, item: str) -> Finish:
        """What nobody foresaw, as in a suite of the user's own, ends the play as a browser that fails does.

        Raises:
            Exception: the error itself, where it was foreseen or the episode may be begun again; or that it came too often.
        """
        surprise = unforeseen(error)
        if surprise is None or play.may_begin_again:
            raise error
        failure = await self._bulkhead.met(surprise, item)
        if failure.disposition is Disposition.FATAL:
            raise failure from error
        return Finish(Outcome.FAILED, error=str(failure))

    # cancellation -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _cancellable(self, episode: EpisodeId) -> Iterator[tuple[anyio.CancelScope, list[str]]]:
        reasons: list[str] = []
        with anyio.CancelScope() as scope:
            playing = self._playing[episode] = scope, reasons
            try:
                yield playing
            finally:
                # A slot that lost its episode may have lost it to another slot here, whose entry stands by now.
                if self._playing.get(episode) is playing:
                    del self._playing[episode]

    async def _hear_cancellations(self, cancellations: AsyncIterator[Record]) -> None:
        async for record in cancellations:
            message = record.message
            if isinstance(message, EpisodeCancel):
                for episode in message.episodes:
                    if (playing := self._playing.get(episode)) is not None:
                        playing[1].append(message.reason)
                        playing[0].cancel()

    # figures ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def _active(self) -> Iterator[None]:
        self._add("active", 1)
        self._status.state = "working"
        try:
            yield
        finally:
            self._add("active", -1)
            if not self._status.metrics["active"]:
                self._status.state = "waiting"

    def _count(self, trajectory: Trajectory) -> None:
        timings = trajectory.timings
        self._add("episodes", 1)
        self._add("steps", trajectory.num_steps)
        self._add("failures", trajectory.outcome is Outcome.FAILED)
        self._add("blocked", trajectory.outcome is Outcome.BLOCKED)
        self._add("navigation_errors", bool(trajectory.navigation_error))
        self._add("reset_s", timings.reset_s)
        self._add("observe_s", timings.observe_s)
        self._add("policy_s", timings.policy_s)
        self._add("act_s", timings.act_s)
        if trajectory.outcome is Outcome.BLOCKED:
            _log.warning("episode_blocked", website=trajectory.task.website, egress=trajectory.egress, reason=trajectory.error)
        if trajectory.navigation_error:
            _log.warning("first_navigation_failed", website=trajectory.task.website, error=trajectory.navigation_error)
        log = _log.warning if trajectory.outcome is Outcome.FAILED else _log.debug
        log("episode_ended", outcome=trajectory.outcome.value, steps=trajectory.num_steps, error=trajectory.error)

    def _add(self, name: str, amount: float) -> None:
        self._status.metrics[name] = self._status.metrics.get(name, 0.0) + amount
