"""Plays one episode: carries the state machine's decisions out on a browser session and the episode's chain.

Invariant: what is on the chain is what was seen and done. A browser that fails ends the episode as data (FAILED with its
reason and the steps it had); a bus that fails raises, so that the task is played again.
"""

import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace

import anyio

from browser_workers.asking import Asking
from browser_workers.browser import Browser, Opening, Performed, Session, Solution
from browser_workers.episode import Act, Ask, Decision, Episode, Finish, Observe, Open
from browser_workers.har.log import NetworkLog
from browser_workers.phases import Phases
from browser_workers.visit import Visit
from browser_workers.words import Worded
from bus import chain as chains
from bus import chain_state
from bus.background import background
from bus.chain import EpisodeChain
from bus.ports import Bus, Record
from bus.subjects import Subjects
from bus.turns import NoTurn
from schemas.errors import BrowserError, ChainConflict, MessageCorrupt, MessageTooLarge
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import (
    Action,
    CheckKind,
    FinalState,
    NetworkRecord,
    Observation,
    Outcome,
    StepRefusal,
    StepRequest,
    Task,
    Timings,
    Trajectory,
)
from schemas.text import valid

_WAITED = "waited"


@dataclass
class Clock:
    """Seconds spent in each phase of one episode."""

    began: float = field(default_factory=time.monotonic)
    seconds: dict[str, float] = field(default_factory=dict)

    def now(self) -> float:
        """Seconds; it stands still while the episode waits for what is not its own time."""
        return time.monotonic() - self.seconds.get(_WAITED, 0.0)

    def add(self, phase: str, since: float) -> None:
        """`since`: by `now`."""
        self.seconds[phase] = self.seconds.get(phase, 0.0) + self.now() - since

    def wait(self, seconds: float) -> None:
        self.seconds[_WAITED] = self.seconds.get(_WAITED, 0.0) + seconds

    def timings(self) -> Timings:
        spent = self.seconds.get
        return Timings(
            reset_s=spent("reset", 0.0),
            observe_s=spent("observe", 0.0),
            policy_s=spent("policy", 0.0),
            act_s=spent("act", 0.0),
            waited_s=spent(_WAITED, 0.0),
            total_s=time.monotonic() - self.began,
        )


_CAUSE_S = 0.2
"""Until what says why an error came is there as well."""
_TRAFFIC_S = 5.0
"""For what was sent last to be answered and written down."""
_FINAL_STATE_S = 30.0
"""For all that checks look at: the episode's own time does not bound that."""


class _TimeIsUp(Exception):
    """The episode's deadline passed while it waited for a session."""


@asynccontextmanager
async def _alive(session: Session) -> AsyncIterator[None]:
    """Ends its body with the session's failure as soon as there is one."""
    failures: list[BrowserError] = []

    async def watch() -> None:
        failures.append(await session.wait_failed())
        scope.cancel()

    async with background(watch):
        with anyio.CancelScope() as scope:
            try:
                yield
            except BrowserError:
                # What says why may come behind the error that it caused.
                await anyio.sleep(_CAUSE_S)
                raise
    if scope.cancelled_caught:
        raise failures[0]


class Play:
    """One attempt at one episode."""

    def __init__(
        self,
        *,
        bus: Bus,
        subjects: Subjects,
        chain: EpisodeChain,
        worker: WorkerId,
        resend_s: float,
        max_attempts: int,
        on_step: Callable[[], None] = lambda: None,
        visit: Visit | None = None,
    ) -> None:
        """`on_step` is called at every answer that is accepted."""
        self._bus = bus
        self._subjects = subjects
        self._chain = chain
        self._task: Task = chain.task
        self._worker = worker
        self._on_step = on_step
        self._visit = visit if visit is not None else Visit()
        self._network = self._visit.network
        self._egress = ""
        self.has_other_egress = False
        """Whether it was blocked, and another attempt could come by another."""
        self._patience = anyio.CancelScope()
        """Of what is being done in the episode's time."""
        self._has_begun = False
        self._retryable = chain.attempt < max_attempts
        self._asking = Asking(bus=bus, subjects=subjects, chain=chain, resend_s=resend_s)
        self._phases = Phases(bus, subjects.phase(worker), chain, worker)
        self._final_state: FinalState | None = None
        self._solution: Solution | None = None
        self._solving: Action | None = None
        """The solution's next step."""
        self._versions: list[PolicyVersion] = []
        self._episode = Episode(self._task, now=time.monotonic())
        self.clock = Clock()

    @property
    def may_begin_again(self) -> bool:
        """Nothing was seen yet, and the episode may be played in another attempt."""
        return self._retryable and not self._chain.num_observations

    async def run(self, browser: Browser, opening: Opening) -> Finish:
        """Plays to the end, and says how it ended.

        Raises:
            BrowserError: the browser failed before anything was seen, and the episode may be begun again.
            BusError: somebody else owns the episode now, or the bus failed.
        """
        decision: Decision = Open()
        self._has_begun = True
        opening = replace(opening, episode=self._task.episode, network=self._network)
        self._visit.begin(opening)
        with self._failing() as failed:
            live = self._subjects.live(self._task.episode, self._chain.attempt)
            began = self.clock.now()
            self._solution = opening.solution if self._task.demonstrate else None
            # Subscribed before anything is asked: an answer may come at once.
            async with self._bus.listen(live) as answers, AsyncExitStack() as stack:
                with self._in_time():
                    session = Worded(await stack.enter_async_context(browser.session(opening)))
                self._egress = session.egress
                while not isinstance(decision, Finish):
                    if isinstance(decision, Ask):
                        decision = await self._ask(session, decision, answers)
                    else:
                        decision = await self._use(session, decision)
                    if not self._chain.num_observations and isinstance(decision, Ask):
                        self.clock.add("reset", began)
                        self.clock.seconds.pop("observe", None)
                self.has_other_egress = decision.blockage is not None and session.has_other_egress()
                if decision.last_look is not None:
                    await self._show(decision.last_look)
                if self._task.checks and decision.outcome.finished:
                    self._final_state = await self._read_final_state(session)
                if self._network is not None:
                    await self._network.settled(_TRAFFIC_S)
        if failed:
            return failed[0]
        assert isinstance(decision, Finish)
        return decision

    @contextmanager
    def _failing(self) -> Iterator[list[Finish]]:
        """Ends its body at what ends an episode, which is then in the list."""
        failed: list[Finish] = []
        try:
            yield failed
        except BrowserError as error:
            if self.may_begin_again:
                raise
            failed.append(Finish(Outcome.FAILED, error=str(error)))
        except MessageTooLarge as error:
            failed.append(Finish(Outcome.FAILED, error=str(error)))
        except MessageCorrupt as error:
            if not error.subject:  # a record of this worker's own
                failed.append(Finish(Outcome.FAILED, error=str(error)))
                return
            self._chain.pass_over(error)
            failed.append(Finish(Outcome.FAILED, error=f"what stands where the answer belongs cannot be read: {error}"))
        except NoTurn as error:
            failed.append(Finish(Outcome.FAILED, error=str(error)))
        except _TimeIsUp:
            failed.append(self._episode.timed_out())

    def trajectory(self, finish: Finish) -> Trajectory:
        return Trajectory(
            task=self._task,
            attempt=self._chain.attempt,
            outcome=finish.outcome,
            num_observations=self._chain.num_observations,
            num_steps=self._chain.num_steps,
            answer=valid(finish.answer),
            environment_reward=finish.reward,
            environment_step_rewards=self._episode.step_rewards,
            environment_success=self._episode.success,
            network=self._chain.network,
            error=finish.error,
            navigation_error=self._episode.navigation_error,
            final_state=self._final_state,
            worker=self._worker,
            num_unparsed=self._episode.num_unparsed,
            num_unparsed_last=self._episode.num_unparsed_last,
            thinking_ended_last=self._episode.thinking_ended_last,
            versions=tuple(self._versions),
            timings=self.clock.timings(),
            ended_at=time.time(),
            egress=self._egress,
            blockages=tuple(self._visit.met),
        )

    async def end(self, finish: Finish) -> Trajectory:
        """Ends the chain.

        Raises:
            ChainConflict: somebody else owns the episode, or has ended it.
        """
        try:
            return await self._close(finish)
        except ChainConflict:
            await self._catch_up()
            return await self._close(finish)

    async def _close(self, finish: Finish) -> Trajectory:
        """Appends the record of its traffic, where there is one, and the end. Raises `ChainConflict`."""
        if self._network is not None and self._has_begun and self._chain.network is None:
            await self._record(self._network)
        trajectory = self.trajectory(finish)
        await self._chain.finish(trajectory)
        return trajectory

    async def _record(self, log: NetworkLog) -> None:
        num_earlier = await self._chain.num_played_before()
        try:
            await self._chain.record(log.record(self._chain, num_earlier))
        except MessageTooLarge as error:
            await self._chain.record(log.unfit(self._chain, num_earlier, str(error)))

    async def _catch_up(self) -> None:
        """Notes what came as the episode was given up, and the chain then ends behind: an answer, a step that was not carried
        out; or its own observation, whose append was cancelled after it was sent.

        Raises:
            ChainConflict: it was something else that was appended.
        """
        try:
            newest = await chain_state.last_behind(self._bus, self._subjects, self._task.episode, self._chain.last_seq)
        except MessageCorrupt as error:
            self._chain.pass_over(error)
            return
        message = newest.message
        if isinstance(message, Observation) and message.attempt == self._chain.attempt:
            self._chain.observed(newest.seq)
        elif isinstance(message, NetworkRecord) and message.attempt == self._chain.attempt:
            self._chain.recorded(newest.seq, message.summary)
        elif chains.is_answer(message, self._chain.attempt):
            self._note_answer(newest, message)
        else:
            raise ChainConflict(f"{self._task.episode} went on without this worker")

    def _note_answer(self, record: Record, step: StepRequest | StepRefusal) -> None:
        if isinstance(step, StepRefusal):
            self._chain.refused(record.seq)
            return
        self._chain.answered(record.seq)
        self._asking.policy = step.worker or None
        self._versions.append(min((span.version for span in step.versions), default=self._task.policy_version))

    async def _read_final_state(self, session: Session) -> FinalState | None:
        """What the task's checks look at; None when the page can no longer be read."""
        expressions = [check.expression for check in self._task.checks if check.kind is CheckKind.PAGE]
        with anyio.move_on_after(_FINAL_STATE_S), suppress(BrowserError):
            values = await session.page_values(expressions)  # which waits until the page has come to rest
            state = await session.state()
            return FinalState(url=state.url, title=state.title, values=values)
        return None

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """The episode's time bounds its body, waits for a free place among the browser's operations included."""
        with anyio.move_on_after(self._episode.deadline - time.monotonic()) as patience:
            yield
        if patience.cancelled_caught:
            raise _TimeIsUp

    async def _use(self, session: Session, decision: Open | Observe | Act) -> Decision:
        began = self.clock.now()
        with anyio.move_on_after(self._episode.deadline - time.monotonic()) as self._patience:
            async with _alive(session):
                match decision:
                    case Open():
                        async with self._visit.turn(None, session.egress, self._out_of_time):
                            performed = await session.open()
                        performed = await self._faced(session, performed)
                        return self._episode.opened(performed, now=time.monotonic())
                    case Observe(after_s=after_s):
                        if after_s:
                            await anyio.sleep(after_s)
                        await self._look_at_solution(session)
                        view = await session.view()
                        self.clock.add("observe", began)
                        self._visit.showed(view.state.url)
                        return self._episode.seen(view, now=time.monotonic())
                    case Act(action=action):
                        async with self._visit.turn(action, session.egress, self._out_of_time) as turn:
                            performed = await session.perform(action)
                            self._visit.led_to(performed, action, turn)
                        performed = await self._faced(session, performed)
                        state = await session.state()
                        self._visit.showed(state.url)
                        self.clock.add("act", began)
                        return self._episode.acted(performed, state, now=time.monotonic())
        return self._episode.timed_out()

    async def _faced(self, session: Session, performed: Performed) -> Performed:
        return await self._visit.faced(
            performed,
            session,
            self._task,
            attempt=self._chain.attempt,
            step=self._chain.num_steps,
            pausing=self._out_of_time,
        )

    @contextmanager
    def _out_of_time(self) -> Iterator[None]:
        """What its body waits for is not the episode's time."""
        began, due = time.monotonic(), self._patience.deadline
        self._patience.deadline = math.inf
        try:
            yield
        finally:
            waited_s = time.monotonic() - began
            self.clock.wait(waited_s)
            self._episode.deadline += waited_s
            self._patience.deadline = due + waited_s

    async def _look_at_solution(self, session: Session) -> None:
        """Ahead of the screenshot: the step's element is brought into view."""
        if self._solution is not None:
            step = self._chain.num_steps
            (located,) = await session.page_values([self._solution.expression(step)])
            self._solving = self._solution.action(step, located)

    # the policy -------------------------------------------------------------------------------------------------------

    async def _ask(self, session: Session, ask: Ask, answers: AsyncIterator[Record]) -> Decision:
        observation_seq = await self._show(ask)
        await self._phases.tell("deciding", ask.step, self._asking.policy)
        began = self.clock.now()
        with anyio.move_on_after(self._episode.deadline - time.monotonic()) as patience:
            async with _alive(session):
                record, step = await self._asking.answer(ask.step, observation_seq, answers)
        self.clock.add("policy", began)
        if patience.cancelled_caught:
            return self._episode.timed_out()
        self._note_answer(record, step)
        if isinstance(step, StepRefusal):
            return self._episode.refused(step)
        self._on_step()
        await self._phases.tell("acting", ask.step, self._asking.policy)
        return self._episode.answered(step)

    async def _show(self, ask: Ask) -> int:
        """Appends the observation, and returns its sequence."""
        view, performed, state = ask.view, ask.performed, ask.view.state
        oracle = state.environment if self._task.demonstrate else None
        oracle_action = oracle.action if oracle is not None else None
        return await self._chain.observe(
            Observation(
                episode=self._task.episode,
                attempt=self._chain.attempt,
                step=ask.step,
                screenshot=view.screenshot,
                url=state.url,
                title=state.title,
                effect=ask.effect,
                error=ask.error,
                same_screenshot=ask.same_screenshot,
                elements=view.elements,
                accessibility_tree=view.accessibility_tree,
                page_errors=view.page_errors,
                tabs=state.tabs,
                hit=performed.hit,
                changes=performed.changes,
                earlier_results=ask.earlier_results,
                page_text=performed.page_text,
                oracle=oracle.target if oracle is not None else None,
                oracle_action=oracle_action or self._solving,
            )
        )
