"""The browser worker on the in-memory bus, with a scripted browser and a scripted policy."""

import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import anyio
import anyio.lowlevel
import msgspec
import pytest
import structlog
from anyio.abc import TaskGroup

from browser_workers.browser import EnvironmentState, Opening, PageState, Performed, View
from browser_workers.har.exchange import Exchange
from browser_workers.suites.demo import DemoSuite
from browser_workers.worker import BrowserWorker
from bus import chain, chain_state
from bus.context import WorkerContext
from bus.fault import MOST_IN_A_ROW
from bus.memory import MemoryBus
from bus.ports import Expect, Record
from bus.presence import Status
from bus.subjects import Subjects
from ops.audit.chains import chain_fault
from ops.audit.ledger import read_ledger
from schemas.browser_config import BrowserConfig
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.errors import BrowserError, BrowserLost, ChainConflict, NotPermitted, PageFailed, WorkerFailing
from schemas.ids import EpisodeId, TaskId, WorkerId
from schemas.messages import (
    Action,
    ActionKind,
    Blockage,
    Check,
    CheckKind,
    DeadLetter,
    EpisodeCancel,
    FinalState,
    Observation,
    Outcome,
    RecordRef,
    Role,
    Screenshot,
    Split,
    StepHeld,
    StepPhase,
    StepWake,
    Task,
    Trajectory,
)
from tests import builders
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.anyio]
SUBJECTS = Subjects(builders.RUN)
STREAM = SUBJECTS.episodes(0)
WORKER = WorkerId("browser-1")
POLICY = WorkerId("policy-1")
REACHED_S = 5.0
"""An episode's time that is used up: enough for what is to come before, on a machine that is busy with other things."""
CLICK = Action(kind=ActionKind.CLICK, point=(500, 500))
ORACLE = Action(kind=ActionKind.TYPE, point=(300, 200), text="hello")


def held_by(worker: WorkerId, wake: StepWake) -> StepHeld:
    return StepHeld(episode=wake.episode, attempt=wake.attempt, step=wake.step, worker=worker)


@dataclass
class ScriptedSession:
    """Won by the click number `clicks_to_win`."""

    browser: "ScriptedBrowser"
    opening: Opening
    clicks: int = 0
    failed: anyio.Event = field(default_factory=anyio.Event)
    crashed: anyio.Event = field(default_factory=anyio.Event)
    hangs: anyio.Event = field(default_factory=anyio.Event)
    passed_over: bool = False

    async def open(self) -> Performed:
        if self.browser.open_failures:
            raise self.browser.open_failures.pop()
        return Performed(navigation_error=self.browser.navigation_error, blockage=await self.blockage())

    async def perform(self, action: Action) -> Performed:
        self.clicks += 1
        if self.opening.network is not None:
            url = f"http://site/{self.clicks}?{secrets.token_hex(self.browser.address_bytes)}"
            exchange = Exchange(method="GET", url=url, started_at=1.0, status=200)
            place = self.opening.network.begin(exchange)
            assert place is not None
            self.opening.network.over(place)
            self.opening.network.put(place, exchange)
        if self.clicks in self.browser.raises:
            raise self.browser.raises[self.clicks]
        if self.clicks == self.browser.crash_at:
            self.crashed.set()
            raise PageFailed("the page crashed")
        if self.clicks == self.browser.hang_at:
            self.hangs.set()
            await anyio.sleep_forever()
        return Performed(blockage=await self.blockage())

    async def state(self) -> PageState:
        done = self.clicks >= self.browser.clicks_to_win
        if not self.browser.judges:
            return PageState("http://site/", "page")
        return PageState("http://site/", "page", EnvironmentState(done, float(done), target=(1, 2, 3, 4), action=ORACLE))

    async def view(self) -> View:
        if self.clicks and self.browser.never_shows:
            await anyio.sleep_forever()
        data = b"screenshot %d" % self.clicks + bytes(self.browser.screenshot_bytes)
        screenshot = Screenshot(data=data, media_type="image/jpeg", width=160, height=210)
        return View(screenshot=screenshot, state=await self.state())

    async def page_values(self, expressions: Sequence[str]) -> tuple[str, ...]:
        if self.browser.never_tells:
            await anyio.sleep_forever()
        return ("3",) * len(expressions)

    @property
    def number(self) -> int:
        return next(number for number, each in enumerate(self.browser.sessions) if each is self)

    @property
    def egress(self) -> str:
        return f"http://p{self.number}.example:3128"

    def has_other_egress(self) -> bool:
        return len(self.browser.sessions) < self.browser.num_egresses

    async def blockage(self) -> Blockage | None:
        found = self.browser.blocks.get((self.number, self.clicks))
        return None if found is None or self.passed_over else msgspec.structs.replace(found, egress=self.egress)

    async def pass_over_blockage(self) -> None:
        self.passed_over = True

    async def wait_failed(self) -> BrowserError:
        await self.failed.wait()
        return BrowserLost("the browser ended while it was in use")


@dataclass
class ScriptedBrowser:
    clicks_to_win: int = 1
    judges: bool = True
    """Its pages say what the episode is worth."""
    never_shows: bool = False
    """What a click led to."""
    crash_at: int = 0
    hang_at: int = 0
    """The click that never returns."""
    screenshot_bytes: int = 0
    address_bytes: int = 0
    """Of what a click asks for, where that is recorded."""
    raises: dict[int, Exception] = field(default_factory=dict)
    """By click, the first is 1: what nobody foresaw."""
    never_tells: bool = False
    """What checks ask the page for."""
    navigation_error: str = ""
    """Of the first page."""
    blocks: dict[tuple[int, int], Blockage] = field(default_factory=dict)
    """By session and clicks so far."""
    num_egresses: int = 1
    open_failures: list[BrowserError] = field(default_factory=list)
    sessions: list[ScriptedSession] = field(default_factory=list)
    num_open: int = 0

    @asynccontextmanager
    async def session(self, opening: Opening) -> AsyncIterator[ScriptedSession]:
        self.sessions.append(ScriptedSession(self, opening))
        self.num_open += 1
        try:
            yield self.sessions[-1]
        finally:
            self.num_open -= 1


class BrokenSuite:
    """Of a user's own, with a mistake."""

    def resolve(self, page: str, query: str) -> Opening:
        return {"shop": Opening("http://shop/")}[page]


@dataclass
class Stage:
    bus: MemoryBus
    browser: ScriptedBrowser
    status: Status
    group: TaskGroup
    trajectories: AsyncIterator[Record]
    wakes: AsyncIterator[Record]

    async def admit(self, *tasks: Task) -> None:
        for task in tasks:
            await chain.admit(self.bus, SUBJECTS, task)
            await self.bus.append(SUBJECTS.tasks, SUBJECTS.task(task.split, task.episode), task)

    async def wake(self) -> tuple[str, StepWake]:
        with anyio.fail_after(HANGS_S):
            record = await anext(self.wakes)
        assert isinstance(record.message, StepWake)
        return record.subject, record.message

    async def observation(self, wake: StepWake) -> Observation:
        record = await chain.read(self.bus, SUBJECTS, RecordRef(wake.episode, wake.attempt, "obs", wake.step))
        assert record is not None
        assert record.seq == wake.observation_seq
        assert isinstance(record.message, Observation)
        return record.message

    async def answer(self, wake: StepWake, action: Action = CLICK, *further: Action, worker: str = "policy-1") -> int:
        step = msgspec.structs.replace(
            builders.step_request(builders.task(), wake.step, worker=WorkerId(worker), version=7),
            episode=wake.episode,
            attempt=wake.attempt,
            action=action,
            further=further,
        )
        return await chain.answer(self.bus, SUBJECTS, wake.observation_seq, step)

    async def ended(self) -> Trajectory:
        with anyio.fail_after(HANGS_S):
            record = await anext(self.trajectories)
        assert isinstance(record.message, Trajectory)
        newest = await chain_state.last(self.bus, SUBJECTS, record.message.episode)
        assert newest is not None
        assert newest.message == record.message
        return record.message

    async def all_acknowledged(self) -> None:
        with anyio.fail_after(HANGS_S):
            while await self.bus.subjects(SUBJECTS.tasks, SUBJECTS.everything("task")):
                await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def stage(
    browser: ScriptedBrowser | None = None,
    *,
    resend_s: float = 0.01,
    ack_wait_s: float = 30.0,
    clock: Callable[[], float] = time.time,
    record_network: bool = False,
    browsers: BrowserConfig | None = None,
    **env: int,
) -> AsyncIterator[Stage]:
    """`ack_wait_s`: the lease of a task, in which a busy machine gets round to everything unless a test says less."""
    config = BusConfig(run=builders.RUN, task_ack_wait_s=ack_wait_s, max_payload_bytes=100_000)
    bus = MemoryBus(SUBJECTS, config, clock=clock)
    browser = browser or ScriptedBrowser()
    status = Status(Role.BROWSER, WORKER)
    worker = BrowserWorker(
        WorkerContext(bus, SUBJECTS, status),
        Config(
            bus_config=config,
            env_config=EnvConfig(**{"server_size": 2, **env}),  # type: ignore[arg-type]
            browser_config=replace(
                browsers or BrowserConfig(), resend_s=resend_s, eval_share=0.25, record_network=record_network
            ),
        ),
        browser=browser,
        suites={"demo": DemoSuite(), "broken": BrokenSuite()},
    )
    async with (
        bus.tail(SUBJECTS.trajectories, SUBJECTS.everything("trajectory")) as trajectories,
        bus.tail(SUBJECTS.steps, SUBJECTS.everything("step")) as wakes,
        anyio.create_task_group() as group,
    ):
        group.start_soon(worker.run)
        yield Stage(bus, browser, status, group, trajectories, wakes)
        group.cancel_scope.cancel()
    assert browser.num_open == 0


@pytest.mark.parametrize("never_tells", [False, True])
async def test_a_page_that_never_tells_what_checks_ask_ends_its_episode(
    never_tells: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("browser_workers.play._FINAL_STATE_S", 0.05)
    check = Check(kind=CheckKind.PAGE, expected=("3",), expression="cart.length")
    async with stage(ScriptedBrowser(never_tells=never_tells)) as on:
        await on.admit(msgspec.structs.replace(builders.task(), checks=(check,)))
        _, wake = await on.wake()
        await on.answer(wake)
        trajectory = await on.ended()
    assert trajectory.outcome is Outcome.DONE
    assert trajectory.final_state == (None if never_tells else FinalState(url="http://site/", title="page", values=("3",)))


async def test_a_site_whose_first_page_cannot_be_had_is_logged_and_counted() -> None:
    with structlog.testing.capture_logs() as logs:
        async with stage(ScriptedBrowser(navigation_error="there is no such host (DNS)")) as on:
            await on.admit(builders.task())
            _, wake = await on.wake()
            await on.answer(wake)
            assert (await on.ended()).navigation_error == "there is no such host (DNS)"
            await on.all_acknowledged()
            assert on.status.metrics["navigation_errors"] == 1.0
    (line,) = [line for line in logs if line["event"] == "first_navigation_failed"]
    assert (line["website"], line["error"]) == (builders.task().website, "there is no such host (DNS)")


async def test_an_episode_from_task_to_trajectory() -> None:
    async with stage(ScriptedBrowser(clicks_to_win=2)) as on:
        await on.admit(builders.task())
        subject, wake = await on.wake()
        assert ".any." in subject
        first = await on.observation(wake)
        assert (first.attempt, first.step, first.oracle, first.oracle_action) == (1, 0, None, None)
        answered = await on.answer(wake)
        subject, second_wake = await on.wake()
        assert ".any." in subject, "nobody takes offers"
        assert (await on.observation(second_wake)).step == 1
        assert wake.observation_seq < answered < second_wake.observation_seq
        await on.answer(second_wake)
        trajectory = await on.ended()
        await on.all_acknowledged()
    assert (trajectory.outcome, trajectory.environment_reward, trajectory.worker) == (Outcome.DONE, 1.0, WORKER)
    assert trajectory.versions == (7, 7)
    assert trajectory.num_observations == trajectory.num_steps == 2
    assert trajectory.timings.total_s > 0
    assert on.status.metrics["episodes"] == 1
    assert on.status.metrics["steps"] == 2


async def test_the_phase_of_every_step_is_told() -> None:
    async with (
        stage(ScriptedBrowser(clicks_to_win=2)) as on,
        on.bus.listen(SUBJECTS.phase(WORKER)) as told,
    ):
        await on.admit(builders.task())
        for _ in range(2):
            await on.answer((await on.wake())[1], worker=POLICY)
        await on.ended()
        phases = [(await anext(told)).message for _ in range(4)]
        assert on.status.metrics["steps_taken"] == 2
        assert on.status.metrics["slots"] == 2
    assert all(isinstance(phase, StepPhase) and (phase.attempt, phase.worker) == (1, WORKER) for phase in phases)
    assert [(phase.phase, phase.step, phase.policy) for phase in phases if isinstance(phase, StepPhase)] == [
        ("deciding", 0, ""),
        ("acting", 0, POLICY),
        ("deciding", 1, POLICY),
        ("acting", 1, POLICY),
    ]


@pytest.mark.parametrize("is_refused", [True, False], ids=["refused", "no connection"])
async def test_an_episode_goes_on_when_nobody_can_be_told(is_refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers whose permissions are older refuse it."""

    async def tell(*_: object) -> None:
        if is_refused:
            raise NotPermitted("no")
        await anyio.sleep_forever()

    monkeypatch.setattr(MemoryBus, "tell", tell)
    monkeypatch.setattr("browser_workers.phases._PATIENCE_S", 0.01)
    async with stage() as on:
        await on.admit(builders.task())
        await on.answer((await on.wake())[1])
        assert (await on.ended()).outcome is Outcome.DONE


async def test_the_oracles_step_is_shown_in_demonstrations_only() -> None:
    async with stage() as on:
        await on.admit(msgspec.structs.replace(builders.task(), demonstrate=True))
        _, wake = await on.wake()
        observation = await on.observation(wake)
        assert (observation.oracle, observation.oracle_action) == ((1, 2, 3, 4), ORACLE)


async def test_a_missed_answer_is_found_on_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryBus, "_publish", lambda *_: None)
    async with stage() as on:
        await on.admit(builders.task())
        _, wake = await on.wake()
        await on.answer(wake)
        assert (await on.ended()).environment_reward == 1.0


@pytest.mark.parametrize("takes", [True, False], ids=["taken", "declined"])
async def test_a_later_step_is_offered_to_who_answered_last(takes: bool) -> None:
    offered = list[object]()

    def accept(message: object) -> bool:
        offered.append(message)
        return takes

    async with stage(ScriptedBrowser(clicks_to_win=2), resend_s=60.0) as on, on.bus.offers(SUBJECTS.wake(POLICY), accept):
        await on.admit(builders.task())
        _, first = await on.wake()
        await on.answer(first)
        with anyio.fail_after(HANGS_S):
            while not offered:
                await anyio.lowlevel.checkpoint()
        if takes:
            assert len(await on.bus.subjects(SUBJECTS.steps, SUBJECTS.everything("step"))) == 1, (
                "only the first step is queued"
            )
            second = offered[0]
        else:
            second = (await on.wake())[1]
        assert isinstance(second, StepWake)
        assert (second.episode, second.step) == (first.episode, 1)
        await on.answer(second)
        assert (await on.ended()).outcome is Outcome.DONE


@pytest.mark.parametrize("queued", [False, True], ids=["offered", "queued"])
async def test_a_step_whose_policy_died_goes_to_another_at_once(queued: bool) -> None:
    """Long before it would be sent again (an hour), and before the queue's own lease on it ends."""
    taken = anyio.Event()

    def accept(_: object) -> bool:
        taken.set()
        return True

    async with stage(ScriptedBrowser(clicks_to_win=2), resend_s=3600.0) as on:
        async with on.bus.offers(SUBJECTS.wake(POLICY), accept):
            await on.admit(builders.task())
            _, wake = await on.wake()
            if queued:
                await on.bus.tell(SUBJECTS.held(wake.episode, 1, 0), held_by(POLICY, wake))
            else:
                await on.answer(wake)
            await taken.wait()
        subject, again = await on.wake()
    assert ".any." in subject
    assert again.step == (0 if queued else 1)


async def test_a_policy_that_has_a_step_is_asked_for_it_and_nobody_else_is() -> None:
    asked, enough = list[object](), anyio.Event()

    def accept(message: object) -> bool:
        asked.append(message)
        if len(asked) == 4:
            enough.set()
        return True

    async with stage(ScriptedBrowser(clicks_to_win=2)) as on, on.bus.offers(SUBJECTS.wake(POLICY), accept):
        await on.admit(builders.task())
        await on.answer((await on.wake())[1])
        await enough.wait()
        assert len(await on.bus.subjects(SUBJECTS.steps, SUBJECTS.everything("step"))) == 1, "the first step's, and no other"
        offered, *questions = asked
        assert isinstance(offered, StepWake)
        assert questions == [held_by(POLICY, offered)] * 3
        await on.answer(offered)
        assert (await on.ended()).outcome is Outcome.DONE


async def test_a_policy_that_holds_a_step_for_ever_does_not_keep_it_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_workers.holder._LONGEST_S", 0.0)
    async with stage(ScriptedBrowser(clicks_to_win=2)) as on, on.bus.offers(SUBJECTS.wake(POLICY), lambda _: True):
        await on.admit(builders.task())
        await on.answer((await on.wake())[1])
        subject, wake = await on.wake()
    assert ".any." in subject
    assert wake.step == 1


async def test_what_was_told_of_another_step_changes_nothing() -> None:
    async with stage(ScriptedBrowser(clicks_to_win=2), resend_s=3600.0) as on:
        await on.admit(builders.task())
        _, wake = await on.wake()
        await on.bus.tell(SUBJECTS.held(wake.episode, 1, 7), held_by(POLICY, msgspec.structs.replace(wake, step=7)))
        await on.answer(wake)
        assert (await on.wake())[1].step == 1


async def test_wake_ups_that_age_out_are_queued_again_at_a_steady_pace() -> None:
    """Of a policy that is away for a hundred ages: pauses that grow would outlast every test."""
    async with stage() as on:
        await on.admit(builders.task())
        for _ in range(100):
            subject, wake = await on.wake()
            await on.bus.purge(SUBJECTS.steps, subject)
        await on.answer(wake)
        assert (await on.ended()).outcome is Outcome.DONE


async def test_a_step_that_no_policy_can_answer_ends_its_episode_at_once() -> None:
    async with stage(ScriptedBrowser(clicks_to_win=9), resend_s=3600.0) as on:
        await on.admit(msgspec.structs.replace(builders.task(), timeout_s=18_000.0))
        await on.answer((await on.wake())[1])
        _, wake = await on.wake()
        await chain.refuse(on.bus, SUBJECTS, wake, "the prompt of step 1 has 9000 tokens", POLICY)
        trajectory = await on.ended()
        await on.all_acknowledged()
    assert (trajectory.outcome, trajectory.error) == (
        Outcome.FAILED,
        "the policy cannot answer step 1: the prompt of step 1 has 9000 tokens",
    )
    assert (trajectory.num_observations, trajectory.num_steps, trajectory.versions) == (2, 1, (7,))
    assert on.status.metrics["failures"] == 1


async def test_a_refusal_whose_live_copy_was_missed_is_found_on_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryBus, "_publish", lambda *_: None)
    async with stage() as on:
        await on.admit(builders.task())
        _, wake = await on.wake()
        await chain.refuse(on.bus, SUBJECTS, wake, "no", POLICY)
        assert (await on.ended()).outcome is Outcome.FAILED


async def test_an_observation_that_is_too_large_ends_the_episode_as_data() -> None:
    async with stage(ScriptedBrowser(screenshot_bytes=200_000)) as on:
        await on.admit(builders.task())
        trajectory = await on.ended()
        await on.all_acknowledged()
    assert trajectory.outcome is Outcome.FAILED
    assert "max_payload_bytes" in trajectory.error
    assert not trajectory.observations


async def test_a_crash_keeps_the_steps_and_is_data() -> None:
    async with stage(ScriptedBrowser(clicks_to_win=9, crash_at=2)) as on:
        await on.admit(builders.task())
        for _ in range(2):
            _, wake = await on.wake()
            await on.answer(wake)
        trajectory = await on.ended()
        await on.all_acknowledged()
    assert (trajectory.outcome, trajectory.error) == (Outcome.FAILED, "the page crashed")
    assert (trajectory.num_observations, trajectory.num_steps, trajectory.environment_reward) == (2, 2, None)


async def test_a_browser_that_dies_while_the_policy_thinks_ends_the_episode_at_once() -> None:
    async with stage() as on:
        await on.admit(builders.task())
        await on.wake()
        on.browser.sessions[0].failed.set()
        trajectory = await on.ended()
    assert (trajectory.outcome, trajectory.error) == (Outcome.FAILED, "the browser ended while it was in use")


async def test_a_browser_that_fails_at_the_start_is_tried_again() -> None:
    failures: list[BrowserError] = [BrowserLost("it did not start")]
    async with stage(ScriptedBrowser(open_failures=failures)) as on:
        await on.admit(builders.task())
        _, wake = await on.wake()
        assert wake.attempt == 2
        await on.answer(wake)
        assert (await on.ended()).outcome is Outcome.DONE


async def test_the_last_attempt_ends_in_failure() -> None:
    failures: list[BrowserError] = [PageFailed("no page")] * 9
    async with stage(ScriptedBrowser(open_failures=failures), max_retries=1) as on:
        await on.admit(builders.task())
        trajectory = await on.ended()
    assert (trajectory.outcome, trajectory.attempt, trajectory.error) == (Outcome.FAILED, 2, "no page")


async def test_an_episode_begun_too_often_is_not_begun_again() -> None:
    async with stage(max_retries=0) as on:
        task = builders.task()
        await chain.admit(on.bus, SUBJECTS, task)
        await chain.EpisodeChain.take(on.bus, SUBJECTS, task, WorkerId("dead"))
        await on.bus.append(SUBJECTS.tasks, SUBJECTS.task(task.split, task.episode), task)
        trajectory = await on.ended()
        assert not on.browser.sessions
    assert (trajectory.outcome, trajectory.error) == (Outcome.FAILED, "begun 1 times and never ended")


async def test_an_unknown_website_fails_with_its_reason() -> None:
    async with stage() as on:
        await on.admit(msgspec.structs.replace(builders.task(), website="demo:nothing"))
        trajectory = await on.ended()
    assert trajectory.outcome is Outcome.FAILED
    assert "no page 'nothing'" in trajectory.error


async def test_time_runs_out_while_the_policy_is_silent() -> None:
    async with stage() as on:
        await on.admit(msgspec.structs.replace(builders.task(), timeout_s=REACHED_S))
        trajectory = await on.ended()
    assert (trajectory.outcome, trajectory.num_observations, trajectory.num_steps) == (Outcome.TIMED_OUT, 1, 0)


async def test_a_cancelled_episode_ends_as_cancelled() -> None:
    async with stage() as on:
        task = builders.task()
        await on.admit(task)
        await on.wake()
        await on.bus.tell(SUBJECTS.cancel, EpisodeCancel(episodes=(task.episode, EpisodeId("other")), reason="grace is over"))
        trajectory = await on.ended()
        await on.all_acknowledged()
    assert (trajectory.outcome, trajectory.error) == (Outcome.CANCELLED, "grace is over")


async def test_an_episode_ended_from_outside_is_let_go() -> None:
    async with stage(ack_wait_s=0.3) as on:
        task = builders.task()
        await on.admit(task)
        await on.wake()
        ended = await chain.cancel(on.bus, SUBJECTS, task, Outcome.CANCELLED, "not needed", 1.0)
        await on.bus.tell(SUBJECTS.cancel, EpisodeCancel(episodes=(task.episode,), reason="not needed"))
        await on.all_acknowledged()
        newest = await chain_state.last(on.bus, SUBJECTS, task.episode)
        assert newest is not None
        assert newest.message == ended


async def test_a_task_that_has_ended_is_only_put_out_again() -> None:
    async with stage() as on:
        task = builders.task()
        await chain.admit(on.bus, SUBJECTS, task)
        ended = await chain.cancel(on.bus, SUBJECTS, task, Outcome.CANCELLED, "not needed", 1.0)
        await on.bus.append(SUBJECTS.tasks, SUBJECTS.task(task.split, task.episode), task)
        assert await on.ended() == ended
        await on.all_acknowledged()


async def test_a_task_that_comes_twice_to_one_worker_ends_once() -> None:
    async with stage(server_size=2) as on:
        task = builders.task()
        await on.admit(task)
        _, first = await on.wake()
        await on.bus.append(SUBJECTS.tasks, SUBJECTS.task(task.split, EpisodeId("copy")), task)
        while (second := (await on.wake())[1]).attempt == first.attempt:
            pass
        await on.answer(second)
        assert (await on.ended()).attempt == 2
        with anyio.fail_after(HANGS_S):
            while on.browser.num_open:
                await anyio.lowlevel.checkpoint()
        await on.admit(builders.task("t2", index=1))
        assert (await on.wake())[1].episode == builders.task("t2").episode


async def test_a_fenced_worker_appends_nothing_more() -> None:
    async with stage(ScriptedBrowser(clicks_to_win=2), ack_wait_s=0.3) as on:
        task = builders.task()
        await on.admit(task)
        _, wake = await on.wake()
        await chain.EpisodeChain.take(on.bus, SUBJECTS, task, WorkerId("other"))
        with pytest.raises(ChainConflict):
            await on.answer(wake)
        # The other owner never settles the task, so it comes again after the ack wait, and is begun anew.
        _, again = await on.wake()
        assert (wake.attempt, again.attempt) == (1, 3)
        kinds = [type(record.message).__name__ for record in await on.bus.history(STREAM, SUBJECTS.chain(task.episode))]
        assert kinds == ["Task", "EpisodeStart", "Observation", "EpisodeStart", "EpisodeStart", "Observation"]


async def test_a_corrupt_task_goes_to_the_dead_letters_and_the_worker_carries_on() -> None:
    async with stage() as on:
        task = builders.task("bad")
        on.bus.store(SUBJECTS.tasks, SUBJECTS.task(task.split, task.episode), b"\xc1 not a message")
        await on.admit(builders.task("good"))
        _, wake = await on.wake()
        await on.answer(wake)
        assert (await on.ended()).task.task == "good"
        await on.all_acknowledged()
        letter = await on.bus.last(SUBJECTS.advisories, SUBJECTS.everything("dead"))
        assert letter is not None
        assert isinstance(letter.message, DeadLetter)


async def test_slots_prefer_their_split_and_fall_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def named(split: Split, count: int) -> list[Task]:
        return [builders.task(f"{split.value}{index}", split=split) for index in range(count)]

    cases: list[tuple[int, int, float, list[str]]] = [
        (4, 4, HANGS_S, ["eval", "train", "train", "train"]),
        (0, 4, 0.05, ["eval"] * 4),
    ]
    for num_train, num_eval, patience_s, expected in cases:
        monkeypatch.setattr("browser_workers.intake._PATIENCE_S", patience_s)
        async with stage(server_size=4) as on:
            await on.admit(*named(Split.TRAIN, num_train), *named(Split.EVAL, num_eval))
            wakes = {(await on.wake())[1].episode for _ in range(4)}
            assert sorted(str(episode).split("-")[0] for episode in wakes) == expected


async def test_stopping_hands_everything_back() -> None:
    async with stage() as on:
        await on.admit(builders.task())
        await on.wake()
        on.group.cancel_scope.cancel()
    assert await on.bus.subjects(SUBJECTS.tasks, SUBJECTS.everything("task")) == {
        SUBJECTS.task(Split.TRAIN, builders.task().episode): 1
    }


async def test_a_session_that_fails_under_an_action_ends_it() -> None:
    async with stage(ScriptedBrowser(hang_at=1)) as run:
        await run.admit(builders.task())
        _, wake = await run.wake()
        await run.answer(wake)
        session = run.browser.sessions[0]
        await session.hangs.wait()
        session.failed.set()
        trajectory = await run.ended()
    assert (trajectory.outcome, trajectory.error) == (Outcome.FAILED, "the browser ended while it was in use")
    assert (trajectory.num_observations, trajectory.num_steps) == (1, 1)
    assert run.browser.num_open == 0


async def test_an_action_does_not_outlast_its_episode() -> None:
    async with stage(ScriptedBrowser(hang_at=1)) as run:
        await run.admit(msgspec.structs.replace(builders.task(), timeout_s=REACHED_S))
        _, wake = await run.wake()
        await run.answer(wake)
        trajectory = await run.ended()
    assert (trajectory.outcome, trajectory.error) == (Outcome.TIMED_OUT, f"not over after {REACHED_S:g} s")
    assert trajectory.num_steps == 1
    assert run.browser.num_open == 0


async def test_what_checks_look_at_is_of_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a redirect which comes to its end while the page is asked."""
    is_there = False

    async def page_values(_: ScriptedSession, expressions: Sequence[str]) -> tuple[str, ...]:
        nonlocal is_there
        is_there = True
        return ("3",) * len(expressions)

    async def state(_: ScriptedSession) -> PageState:
        return PageState("http://site/done" if is_there else "http://site/", "page")

    monkeypatch.setattr(ScriptedSession, "page_values", page_values)
    monkeypatch.setattr(ScriptedSession, "state", state)
    async with stage(ScriptedBrowser(judges=False)) as run:
        await run.admit(msgspec.structs.replace(builders.task(), checks=(PROVED,)))
        await run.answer((await run.wake())[1], DONE)
        ended = await run.ended()
    assert ended.final_state == FinalState(url="http://site/done", title="page", values=("3",))


async def test_an_observation_that_cannot_be_written_ends_its_episode_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    beyond = Action(kind=ActionKind.CLICK, point=(1200, 500))
    shown = PageState("http://site/", "page", EnvironmentState(done=False, reward=0.0, target=(1, 2, 3, 4), action=beyond))

    async def state(_: ScriptedSession) -> PageState:
        return shown

    monkeypatch.setattr(ScriptedSession, "state", state)
    async with stage() as run:
        await run.admit(msgspec.structs.replace(builders.task(), demonstrate=True))
        ended = await run.ended()
    assert (ended.outcome, ended.attempt, ended.num_observations) == (Outcome.FAILED, 1, 0)
    assert ended.error.startswith("a Observation cannot be written: ")


DONE = Action(kind=ActionKind.ANSWER, text="42")
PROVED = Check(kind=CheckKind.PAGE, expected=("3",), expression="cart.length")


@pytest.mark.parametrize("never_shows", [False, True])
async def test_an_answer_behind_other_actions_ends_the_chain_with_what_they_led_to(never_shows: bool) -> None:
    """And where the page cannot be looked at any more, it ends with the answer all the same."""
    async with stage(ScriptedBrowser(judges=False, never_shows=never_shows)) as run:
        task = msgspec.structs.replace(builders.task(), checks=(PROVED,), timeout_s=REACHED_S if never_shows else HANGS_S)
        await run.admit(task)
        _, wake = await run.wake()
        await run.answer(wake, CLICK, DONE)
        ended = await run.ended()
        ledger = await read_ledger(run.bus, SUBJECTS)
        seen = [await chain.read(run.bus, SUBJECTS, ref) for ref in ended.observations]
    assert (ended.outcome, ended.answer, ended.num_steps) == (Outcome.ANSWERED, "42", 1)
    assert ended.final_state == FinalState(url="http://site/", title="page", values=("3",))
    assert chain_fault(ledger.chains[task.episode]) is None
    shown = [record.message.screenshot.data for record in seen if record and isinstance(record.message, Observation)]
    assert shown == [b"screenshot 0", b"screenshot 1"][: ended.num_observations]
    assert ended.num_observations == (1 if never_shows else 2)


async def test_the_cause_that_comes_behind_its_consequence_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_workers.play._CAUSE_S", HANGS_S)
    async with stage(ScriptedBrowser(crash_at=1)) as run:
        await run.admit(builders.task())
        _, wake = await run.wake()
        await run.answer(wake)
        session = run.browser.sessions[0]
        await session.crashed.wait()
        await anyio.lowlevel.checkpoint()
        session.failed.set()
        trajectory = await run.ended()
    assert (trajectory.outcome, trajectory.error) == (Outcome.FAILED, "the browser ended while it was in use")


def broken(name: str) -> Task:
    return msgspec.structs.replace(builders.task(name), website="broken:lamps")


async def test_a_suite_that_raises_ends_its_episode_by_name_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.settlement.retry_delay_s", lambda _: 0.0)
    with structlog.testing.capture_logs() as logs:
        async with stage() as on:
            await on.admit(broken("bad"), builders.task("good"))
            await on.answer((await on.wake())[1])
            ended = {trajectory.task.task: trajectory for trajectory in [await on.ended(), await on.ended()]}
            await on.all_acknowledged()
            beat = on.status.heartbeat(0.0)
            told = await on.bus.history(SUBJECTS.advisories, SUBJECTS.everything("fault"))
            letters = await on.bus.subjects(SUBJECTS.advisories, SUBJECTS.everything("dead"))
    bad = ended[TaskId("bad")]
    assert bad.outcome is Outcome.FAILED
    assert "KeyError: 'lamps' (unit/test_browser_worker.py:" in bad.error
    assert ended[TaskId("good")].outcome is Outcome.DONE
    assert beat.metrics["unexpected"] == len(told) == 3
    assert not letters, "the trajectory says it"
    lines = [line for line in logs if line["event"] == "unexpected_error"]
    assert [isinstance(line["exc_info"], KeyError) for line in lines] == [True] * 3


async def test_a_session_that_raises_ends_its_episode_with_the_steps_it_had() -> None:
    async with stage(ScriptedBrowser(clicks_to_win=9, raises={2: TypeError("no such method")})) as on:
        await on.admit(builders.task())
        await on.answer((await on.wake())[1])
        await on.answer((await on.wake())[1])
        trajectory = await on.ended()
        await on.all_acknowledged()
    assert (trajectory.outcome, trajectory.num_steps, trajectory.versions) == (Outcome.FAILED, 2, (7, 7))
    assert trajectory.error.startswith("unexpected TypeError: no such method")


async def test_one_that_may_not_begin_again_says_what_it_met() -> None:
    async with stage(max_retries=0) as on:
        await on.admit(broken("bad"))
        assert "KeyError: 'lamps'" in (await on.ended()).error


async def test_episode_after_episode_ends_the_worker_and_leaves_no_task_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.settlement.retry_delay_s", lambda _: 60.0)
    tasks = [broken(f"bad{number}") for number in range(MOST_IN_A_ROW)]
    with anyio.fail_after(HANGS_S), pytest.RaisesGroup(pytest.RaisesExc(WorkerFailing, match="lamps"), flatten_subgroups=True):
        async with stage() as on:
            await on.admit(*tasks)
            await anyio.sleep_forever()
    assert len(await on.bus.subjects(SUBJECTS.tasks, SUBJECTS.everything("task"))) == len(tasks)


async def test_a_cancel_that_comes_as_an_observation_is_appended_ends_the_chain_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server has stored the observation, and its answer does not come through any more."""
    append, stored = MemoryBus.append_bytes, anyio.Event()

    async def append_unheard(self: MemoryBus, stream: str, subject: str, data: bytes, *, expect: Expect | None = None) -> int:
        seq = await append(self, stream, subject, data, expect=expect)
        if ".obs." in subject:
            stored.set()
            await anyio.sleep_forever()
        return seq

    monkeypatch.setattr(MemoryBus, "append_bytes", append_unheard)
    async with stage() as on:
        task = builders.task()
        await on.admit(task)
        await stored.wait()
        await on.bus.tell(SUBJECTS.cancel, EpisodeCancel(episodes=(task.episode,), reason="late"))
        with anyio.fail_after(HANGS_S):
            trajectory = await on.ended()
        await on.all_acknowledged()
    assert (trajectory.outcome, trajectory.attempt, trajectory.num_observations) == (Outcome.CANCELLED, 1, 1)
