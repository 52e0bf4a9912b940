"""The judge worker: one judgement per trajectory, and never a reward where there was no verdict."""

import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import structlog
from msgspec import structs

from bus.background import first_of
from bus.blocklist import read_blocklist
from bus.chain import publish_trajectory
from bus.context import WorkerContext
from bus.fault import MOST_IN_A_ROW
from bus.memory import MemoryBus
from bus.ports import Delivery, Expect, Inbox, Record, WorkQueue
from bus.presence import Status
from bus.subjects import Subjects
from bus.topology import trajectory_queue
from judges.endpoint.port import Answer
from judges.episode import JudgedEpisode
from judges.judge import Judge, Ruling, excluded, scored
from judges.named.environment_v1 import EnvironmentJudge
from judges.rubric.session import RecordedSessions
from judges.worker import JudgeWorker
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.errors import BusUnavailable, ConfigurationError, JudgeError, MessageCorrupt, NoVerdict, WorkerFailing
from schemas.ids import RunName, TaskId
from schemas.judge_config import JudgeConfig, ShapingConfig
from schemas.messages import (
    AskedQuestion,
    Blockage,
    Fault,
    Judgement,
    JudgeProtocol,
    Outcome,
    RewardPart,
    Role,
    Split,
    StageUsage,
    StageVerdict,
    Trajectory,
    Verdict,
)
from tests.builders import RUN, WORKER, judgement, observation, task, trajectory
from tests.deadlines import HANGS_S
from tests.support.judging.sessions import RUBRIC, YES, Model, inquiry, judge_sessions, recorded

pytestmark = pytest.mark.anyio
SUBJECTS = Subjects(RUN)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that failed is asked again at once."""
    monkeypatch.setattr("judges.attempts.retry_delay_s", lambda _: 0.0)


class FailingJudge:
    """Fails a given number of times, then finds success."""

    name = "failing_v1"

    def __init__(self, num_failures: int, error: BaseException | None = None) -> None:
        self.num_failures = num_failures
        self.num_calls = 0
        self._error = error or JudgeError("the endpoint is away")

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        self.num_calls += 1
        if self.num_calls <= self.num_failures:
            raise self._error
        return Ruling(verdict=Verdict.SUCCESS, reward=1.0)


class RulingJudge:
    """Always finds the same."""

    name = "ruling_v1"

    def __init__(self, ruling: Ruling) -> None:
        self.ruling = ruling

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        return self.ruling


class WaitingJudge:
    """Waits for ever."""

    name = "waiting_v1"

    def __init__(self) -> None:
        self.begun = anyio.Event()

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        self.begun.set()
        await anyio.sleep_forever()
        raise AssertionError


RUBRICS = (EnvironmentJudge.name, FailingJudge.name, RulingJudge.name, WaitingJudge.name, RUBRIC)


@asynccontextmanager
async def judging(
    bus: MemoryBus, judge: Judge, *, config: JudgeConfig | None = None, status: Status | None = None
) -> AsyncIterator[None]:
    worker = JudgeWorker(
        WorkerContext(bus, SUBJECTS, status or Status(Role.JUDGE, WORKER)),
        Config(judge_config=replace(config or JudgeConfig(), judge=judge.name)),
        judge=judge,
    )
    async with anyio.create_task_group() as group:
        group.start_soon(worker.run)
        yield
        group.cancel_scope.cancel()


async def first_judgement(bus: MemoryBus) -> Judgement:
    with anyio.fail_after(HANGS_S):
        async with bus.tail(SUBJECTS.judged, SUBJECTS.judgements(None)) as records:
            record = await anext(records)
    assert isinstance(record.message, Judgement)
    return record.message


@pytest.mark.parametrize(
    ("outcome", "reward", "verdict", "judged_reward"),
    [
        (Outcome.DONE, 1.0, Verdict.SUCCESS, 1.0),
        (Outcome.DONE, 0.0, Verdict.FAILURE, 0.0),
        (Outcome.DONE, 0.4, Verdict.FAILURE, 0.4),
        (Outcome.STEP_LIMIT, 0.0, Verdict.FAILURE, 0.0),
        (Outcome.UNREADABLE, 1.0, Verdict.FAILURE, 0.0),
        (Outcome.UNREADABLE, -1.0, Verdict.FAILURE, -1.0),
        (Outcome.FAILED, None, Verdict.EXCLUDED, None),
        (Outcome.CANCELLED, 1.0, Verdict.EXCLUDED, None),
    ],
)
async def test_rulings(outcome: Outcome, reward: float | None, verdict: Verdict, judged_reward: float | None) -> None:
    bus = MemoryBus(SUBJECTS, BusConfig(), RUBRICS)
    async with judging(bus, EnvironmentJudge()):
        await publish_trajectory(bus, SUBJECTS, trajectory(task(), outcome=outcome, reward=reward))
        judgement = await first_judgement(bus)
    assert (judgement.verdict, judgement.reward) == (verdict, judged_reward)


async def test_an_unreadable_end_is_no_question_for_a_judge_and_may_cost() -> None:
    bus, judge = MemoryBus(SUBJECTS, BusConfig(), RUBRICS), FailingJudge(num_failures=99)
    async with judging(bus, judge, config=JudgeConfig(shaping=ShapingConfig(unreadable=1.0))):
        await publish_trajectory(bus, SUBJECTS, trajectory(task(), outcome=Outcome.UNREADABLE))
        judgement = await first_judgement(bus)
    assert (judgement.verdict, judgement.reward, judge.num_calls) == (Verdict.FAILURE, -1.0, 0)
    assert [part.name for part in judgement.parts] == ["outcome", "unreadable"]


async def test_an_unreadable_end_keeps_what_its_steps_cost() -> None:
    bus = MemoryBus(SUBJECTS, BusConfig(), RUBRICS)
    ended = trajectory(task(), outcome=Outcome.UNREADABLE, reward=-0.3, num_steps=2)
    async with judging(bus, EnvironmentJudge()):
        await publish_trajectory(bus, SUBJECTS, structs.replace(ended, environment_step_rewards=(-0.1, -0.2)))
        judgement = await first_judgement(bus)
    assert (judgement.reward, judgement.step_rewards) == (-0.3, (-0.1, -0.2))


async def test_a_judge_error_is_retried_then_succeeds() -> None:
    bus, judge = MemoryBus(SUBJECTS, BusConfig(), RUBRICS), FailingJudge(num_failures=1)
    async with judging(bus, judge):
        await publish_trajectory(bus, SUBJECTS, trajectory(task()))
        assert (await first_judgement(bus)).verdict is Verdict.SUCCESS
    assert judge.num_calls == 2


async def test_a_judge_that_never_answers_gives_an_error_without_a_reward() -> None:
    bus, judge = MemoryBus(SUBJECTS, BusConfig(), RUBRICS), FailingJudge(num_failures=99)
    async with judging(bus, judge, config=JudgeConfig(max_attempts=2)):
        await publish_trajectory(bus, SUBJECTS, trajectory(task()))
        judgement = await first_judgement(bus)
    assert (judgement.verdict, judgement.reward, judge.num_calls) == (Verdict.ERROR, None, 2)
    assert judgement.error == "asked 2 times, the judge failed: the endpoint is away"


async def judged_by(judge: Judge, of: Trajectory, *, config: JudgeConfig | None = None) -> Judgement:
    bus = MemoryBus(SUBJECTS, BusConfig(), RUBRICS)
    async with judging(bus, judge, config=config):
        await publish_trajectory(bus, SUBJECTS, of)
        return await first_judgement(bus)


async def test_how_models_were_asked_stands_in_the_judgement() -> None:
    asked = AskedQuestion(stage="seen", model="m", temperature=0.5, screenshots=(4, 2))
    protocols = (JudgeProtocol(judge="seen_v1", prompts="mine", digest="0" * 64, questions=(asked,)),)
    given = await judged_by(RulingJudge(replace(scored(passed=True), protocols=protocols)), trajectory(task()))
    assert given.protocols == protocols


@pytest.mark.parametrize(
    ("error", "num_calls", "words"),
    [
        (NoVerdict("every answer was empty"), 1, "every answer was empty"),
        (MessageCorrupt("not MessagePack"), 1, "not MessagePack"),
        (KeyError("price"), 3, "asked 3 times, the judge failed: KeyError: 'price'"),
        (ExceptionGroup("together", [NoVerdict("none"), JudgeError("away")]), 1, "none"),
        (ExceptionGroup("together", [ExceptionGroup("inner", [ValueError("odd")])]), 3, "ValueError: odd"),
    ],
)
async def test_what_becomes_of_a_judges_errors(error: Exception, num_calls: int, words: str) -> None:
    judge = FailingJudge(99, error)
    given = await judged_by(judge, trajectory(task()), config=JudgeConfig(max_attempts=3))
    assert (given.verdict, given.reward, judge.num_calls) == (Verdict.ERROR, None, num_calls)
    assert given.error.endswith(words)


async def test_an_unforeseen_error_is_logged_with_its_traceback() -> None:
    with structlog.testing.capture_logs() as logs:
        given = await judged_by(FailingJudge(1, KeyError("price")), trajectory(task()))
    assert given.verdict is Verdict.SUCCESS
    [raised] = [log for log in logs if log["event"] == "judge_raised"]
    assert isinstance(raised["exc_info"], KeyError)
    assert raised["exc_info"].__traceback__ is not None


class ForgetfulJudge:
    """As somebody may write it, who returns nothing."""

    name = "ruling_v1"

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        return None  # type: ignore[return-value]


async def test_a_judge_that_returns_no_ruling_is_an_error_that_says_so() -> None:
    given = await judged_by(ForgetfulJudge(), trajectory(task()), config=JudgeConfig(max_attempts=1))
    assert given.verdict is Verdict.ERROR
    assert "returned NoneType where a Ruling belongs" in given.error


@pytest.mark.parametrize(
    "error",
    [
        ConfigurationError("the key is refused"),
        ExceptionGroup("together", [NoVerdict("none"), ConfigurationError("the key is refused")]),
    ],
)
async def test_a_persons_mistake_ends_the_worker_and_hands_the_trajectory_back(error: Exception) -> None:
    bus = MemoryBus(SUBJECTS, BusConfig(), RUBRICS)
    await publish_trajectory(bus, SUBJECTS, trajectory(task()))
    with anyio.fail_after(HANGS_S), pytest.RaisesGroup(pytest.RaisesExc(ConfigurationError), flatten_subgroups=True):
        async with judging(bus, FailingJudge(99, error)):
            await anyio.sleep_forever()
    assert not await bus.subjects(SUBJECTS.judged, SUBJECTS.judgements(None))
    async with judging(bus, FailingJudge(0)):
        assert (await first_judgement(bus)).verdict is Verdict.SUCCESS


async def handed_back(bus: MemoryBus, rubric: str, num_times: int) -> None:
    """Delivers the only trajectory so often, to workers that stop at once."""
    async with bus.work(trajectory_queue(SUBJECTS, BusConfig(), rubric), prefetch=0) as inbox:
        for _ in range(num_times):
            with anyio.fail_after(HANGS_S):
                delivery: Delivery = await anext(inbox)
            await delivery.nak()


async def test_kills_and_hand_backs_are_no_attempts() -> None:
    bus, judge = MemoryBus(SUBJECTS, BusConfig(), RUBRICS), FailingJudge(num_failures=1)
    await publish_trajectory(bus, SUBJECTS, trajectory(task()))
    await handed_back(bus, judge.name, 20)
    async with judging(bus, judge, config=JudgeConfig(max_attempts=2)):
        assert (await first_judgement(bus)).verdict is Verdict.SUCCESS
    assert judge.num_calls == 2


async def test_a_trajectory_that_ends_its_workers_is_an_error() -> None:
    bus, judge = MemoryBus(SUBJECTS, BusConfig(), RUBRICS), FailingJudge(num_failures=0)
    await publish_trajectory(bus, SUBJECTS, trajectory(task()))
    await handed_back(bus, judge.name, 24)
    async with judging(bus, judge):
        given = await first_judgement(bus)
    assert (given.verdict, given.reward, judge.num_calls) == (Verdict.ERROR, None, 0)
    assert given.error.startswith("delivered 25 times and never judged")


async def test_a_bus_that_is_away_is_no_failure_of_the_judge() -> None:
    judge = FailingJudge(1, BusUnavailable("no server"))
    given = await judged_by(judge, trajectory(task()), config=JudgeConfig(max_attempts=1))
    assert (given.verdict, judge.num_calls) == (Verdict.SUCCESS, 2)


class ReadingJudge:
    """Looks at the screenshots."""

    name = "ruling_v1"

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        await episode.observations()
        return scored(passed=True)


async def test_an_outage_of_the_chains_of_any_length_uses_up_no_delivery(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("bus.settlement", "judges.worker"):
        monkeypatch.setattr(f"{module}.retry_delay_s", lambda _: 0.0)
    away, history = [BusUnavailable("no leader")] * 40, MemoryBus.history

    async def history_if_there(self: MemoryBus, stream: str, subject_filter: str) -> Sequence[Record]:
        if stream == SUBJECTS.episodes(0) and away:
            raise away.pop()
        return await history(self, stream, subject_filter)

    monkeypatch.setattr(MemoryBus, "history", history_if_there)
    bus = MemoryBus(SUBJECTS, BusConfig(), RUBRICS)
    played = trajectory(task(), num_observations=1)
    await bus.append(SUBJECTS.episodes(0), SUBJECTS.chain_record(played.episode, 1, "obs", 0), observation(task()))
    async with judging(bus, ReadingJudge()):
        await publish_trajectory(bus, SUBJECTS, played)
        given = await first_judgement(bus)
    assert (given.verdict, away) == (Verdict.SUCCESS, [])


class PickyJudge:
    """Of a user's own, with a mistake that concerns some tasks."""

    name = "failing_v1"

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        if episode.trajectory.task.task.startswith("bad"):
            raise KeyError("price")
        return scored(passed=True)


async def test_what_a_judge_raises_ends_one_trajectory_as_an_error_told_by_name() -> None:
    bus, status = MemoryBus(SUBJECTS, BusConfig(), RUBRICS), Status(Role.JUDGE, WORKER)
    with structlog.testing.capture_logs() as logs:
        async with judging(bus, PickyJudge(), config=JudgeConfig(max_attempts=3), status=status):
            for name in ("bad", "good"):
                await publish_trajectory(bus, SUBJECTS, trajectory(task(name)))
            await all_acknowledged(bus, PickyJudge.name)
    judged = await bus.history(SUBJECTS.judged, SUBJECTS.judgements(None))
    given = {record.message.trajectory.task.task: record.message for record in judged if isinstance(record.message, Judgement)}
    assert (given[TaskId("bad")].verdict, given[TaskId("bad")].reward) == (Verdict.ERROR, None)
    assert given[TaskId("bad")].error == "asked 3 times, the judge failed: KeyError: 'price'"
    assert given[TaskId("good")].verdict is Verdict.SUCCESS
    assert status.heartbeat(0.0).metrics["unexpected"] == 1.0
    [told] = await bus.history(SUBJECTS.advisories, SUBJECTS.everything("fault"))
    assert isinstance(told.message, Fault)
    assert (told.message.error, told.message.place.split(":")[0]) == ("KeyError: 'price'", "unit/test_judge_worker.py")
    assert [line["event"] for line in logs if "exc_info" in line] == ["judge_raised"] * 3 + ["unexpected_error"]


async def test_a_judge_that_raises_at_everything_ends_its_worker_and_leaves_no_trajectory_unjudged() -> None:
    bus = MemoryBus(SUBJECTS, BusConfig(), RUBRICS)
    names = [f"bad{number}" for number in range(MOST_IN_A_ROW + 2)]
    for name in names:
        await publish_trajectory(bus, SUBJECTS, trajectory(task(name)))
    ends, judged = list[str](), 0
    with anyio.fail_after(HANGS_S):
        while judged < len(names):
            try:
                async with judging(bus, PickyJudge(), config=JudgeConfig(max_attempts=1)):
                    await all_acknowledged(bus, PickyJudge.name)
            except* WorkerFailing as failures:
                ends.append(str(first_of(failures)))
            judged = len(await bus.subjects(SUBJECTS.judged, SUBJECTS.judgements(None)))
    assert all(said.startswith("one item after the other meets KeyError: 'price'") for said in ends)
    assert ends


async def test_what_nobody_foresaw_beside_the_judge_is_an_error_at_the_third_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.settlement.retry_delay_s", lambda _: 0.0)
    monkeypatch.setattr("judges.worker.shape", lambda *_: dict[str, Ruling]()["shape"])
    given = await judged_by(RulingJudge(scored(passed=True)), trajectory(task()))
    assert (given.verdict, given.reward) == (Verdict.ERROR, None)
    assert given.error.startswith("unexpected at 3 tries: KeyError: 'shape'")


async def test_what_is_judged_is_not_judged_again() -> None:
    """A worker was killed between its judgement and the acknowledgement."""
    bus, judge, status = MemoryBus(SUBJECTS, BusConfig(), RUBRICS), FailingJudge(0), Status(Role.JUDGE, WORKER)
    before, after = trajectory(task("before")), trajectory(task("after"))
    subject = SUBJECTS.judgement(Split.TRAIN, judge.name, before.episode)
    await bus.append(SUBJECTS.judged, subject, judgement(before, 0.0, rubric=judge.name), expect=Expect(subject, 0))
    await publish_trajectory(bus, SUBJECTS, before)
    async with judging(bus, judge, status=status):
        await publish_trajectory(bus, SUBJECTS, after)
        await all_acknowledged(bus, judge.name)
    assert judge.num_calls == 1
    assert status.metrics["success"] == 1
    assert set((await bus.subjects(SUBJECTS.judged, SUBJECTS.judgements(None))).values()) == {1}


async def all_acknowledged(bus: MemoryBus, rubric: str) -> None:
    queue = trajectory_queue(SUBJECTS, BusConfig(), rubric)
    with anyio.fail_after(HANGS_S):
        while (depth := await bus.depth(queue)) is not None and depth.num_pending + depth.num_in_flight > 0:
            await anyio.lowlevel.checkpoint()


SHOP = "https://www.shop.example:443/aisle"


def on_site(of: Trajectory, split: Split = Split.TRAIN) -> Trajectory:
    return structs.replace(of, task=structs.replace(of.task, website=SHOP, split=split))


@pytest.mark.parametrize("split", Split)
@pytest.mark.parametrize(
    ("outcome", "ruling"),
    [
        (Outcome.BLOCKED, scored(passed=True)),
        (Outcome.ANSWERED, replace(excluded("it was blocked"), blocked=True)),
    ],
)
async def test_a_site_that_blocked_the_agent_is_listed_before_the_judgement_says_so(
    outcome: Outcome, ruling: Ruling, split: Split
) -> None:
    bus, blocked_first = MemoryBus(SUBJECTS, BusConfig(), RUBRICS), list[bool]()
    append_bytes = bus.append_bytes

    async def noted(stream: str, subject: str, data: bytes, *, expect: Expect | None = None) -> int:
        if stream == SUBJECTS.judged:
            blocked_first.append(bool((await read_blocklist(bus, SUBJECTS)).blocked(time.time())))
        return await append_bytes(stream, subject, data, expect=expect)

    bus.append_bytes = noted  # type: ignore[method-assign]
    async with judging(bus, RulingJudge(ruling), config=JudgeConfig(blocklist_hours=2.0)):
        await publish_trajectory(bus, SUBJECTS, on_site(trajectory(task(), outcome=outcome), split))
        given = await first_judgement(bus)
    assert (given.verdict, given.reward, given.blocked) == (Verdict.EXCLUDED, None, True)
    assert blocked_first == [True]
    entries = (await read_blocklist(bus, SUBJECTS)).blocked(time.time())
    assert list(entries) == ["shop.example"]
    assert entries["shop.example"].until == pytest.approx(time.time() + 2 * 3600, abs=60)
    assert entries["shop.example"].episode == given.episode


@pytest.mark.parametrize(
    ("retry_after_s", "elsewhere", "hours"), [(3600.0, False, 1.0), (86_400.0, False, 2.0), (3600.0, True, 2.0)]
)
async def test_a_site_that_says_when_to_come_back_is_listed_no_longer(
    retry_after_s: float, elsewhere: bool, hours: float
) -> None:
    bus = MemoryBus(SUBJECTS, BusConfig(), RUBRICS)
    met = Blockage(site="shop.example", sign="too many", provider="site", retry_after_s=retry_after_s, elsewhere=elsewhere)
    ended = structs.replace(on_site(trajectory(task(), outcome=Outcome.BLOCKED)), blockages=(met,))
    async with judging(bus, RulingJudge(scored(passed=True)), config=JudgeConfig(blocklist_hours=2.0)):
        await publish_trajectory(bus, SUBJECTS, ended)
        assert (await first_judgement(bus)).blocked
    entries = (await read_blocklist(bus, SUBJECTS)).blocked(time.time())
    assert entries["shop.example"].until == pytest.approx(time.time() + hours * 3600, abs=60)


@pytest.mark.parametrize(("age_h", "left_h"), [(0.5, 1.5), (3.0, None)])
async def test_a_site_is_listed_from_the_episodes_end_on(age_h: float, left_h: float | None) -> None:
    """Judged again after days, an episode says nothing about its site today."""
    now_s = time.time() - age_h * 3600
    bus = MemoryBus(SUBJECTS, BusConfig(), RUBRICS, clock=lambda: now_s)
    await publish_trajectory(bus, SUBJECTS, on_site(trajectory(task(), outcome=Outcome.BLOCKED)))
    now_s = time.time()
    async with judging(bus, RulingJudge(scored(passed=True)), config=JudgeConfig(blocklist_hours=2.0)):
        assert (await first_judgement(bus)).blocked
    entries = (await read_blocklist(bus, SUBJECTS)).blocked(now_s)
    left = [(entry.until - now_s) / 3600 for entry in entries.values()]
    assert left == ([] if left_h is None else [pytest.approx(left_h, abs=0.02)])


async def test_an_episode_of_another_run_lists_no_site() -> None:
    bus = MemoryBus(SUBJECTS, BusConfig(), RUBRICS)
    replayed = on_site(trajectory(structs.replace(task(), run=RunName("another")), outcome=Outcome.BLOCKED))
    async with judging(bus, RulingJudge(scored(passed=True))):
        await publish_trajectory(bus, SUBJECTS, replayed)
        assert (await first_judgement(bus)).blocked
    assert not (await read_blocklist(bus, SUBJECTS)).entries


@pytest.mark.parametrize(
    ("ruling", "hours"),
    [(replace(excluded("it was blocked"), blocked=True), 0.0), (scored(passed=False), 12.0), (excluded("unreadable"), 12.0)],
)
async def test_no_other_site_is_listed(ruling: Ruling, hours: float) -> None:
    bus = MemoryBus(SUBJECTS, BusConfig(), RUBRICS)
    async with judging(bus, RulingJudge(ruling), config=JudgeConfig(blocklist_hours=hours)):
        await publish_trajectory(bus, SUBJECTS, on_site(trajectory(task(), outcome=Outcome.ANSWERED)))
        assert (await first_judgement(bus)).blocked is ruling.blocked
    assert not (await read_blocklist(bus, SUBJECTS)).entries


@pytest.mark.parametrize(("split", "reward"), [(Split.TRAIN, 0.5), (Split.EVAL, 1.0)])
async def test_training_episodes_are_shaped(split: Split, reward: float) -> None:
    played = on_site(trajectory(task(max_steps=4), num_steps=2), split)
    config = JudgeConfig(shaping=ShapingConfig(length=1.0))
    given = await judged_by(RulingJudge(scored(passed=True)), played, config=config)
    assert (given.verdict, given.reward) == (Verdict.SUCCESS, reward)
    assert sum(part.value for part in given.parts) == reward


class SessionJudge:
    """Asks one question per episode."""

    name = RUBRIC

    def __init__(self, sessions: RecordedSessions) -> None:
        self._sessions = sessions

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        session = await self._sessions.begin(episode.trajectory)
        finding = await session.ask(inquiry())
        return scored(passed=finding.passed, usage=session.usage)


async def test_a_paused_judge_keeps_its_trajectories_and_hands_them_back_unharmed() -> None:
    bus, names, status = MemoryBus(SUBJECTS, BusConfig(), RUBRICS), ("t1", "t2", "t3", "t4"), Status(Role.JUDGE, WORKER)
    queue = trajectory_queue(SUBJECTS, BusConfig(), RUBRIC)
    for name in names:
        await publish_trajectory(bus, SUBJECTS, trajectory(task(name)))
    model = Model(lambda _: YES)
    async with (
        judge_sessions(bus, model, judge=JudgeConfig(max_calls=2), status=status) as sessions,
        judging(bus, SessionJudge(sessions), status=status),
    ):
        with anyio.fail_after(HANGS_S):
            while status.state != "paused" or len(await bus.subjects(SUBJECTS.judged, SUBJECTS.judgements(None))) < 2:
                await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
        depth = await bus.depth(queue)
        assert depth is not None
        assert (depth.num_pending, depth.num_in_flight) == (0, 2)
        beat = status.heartbeat(0.0)
        assert (beat.state, beat.note) == ("paused", status.note)
        assert "raise judge_config.max_calls (2)" in beat.note

    async with judge_sessions(bus, model) as sessions, judging(bus, SessionJudge(sessions)):
        await all_acknowledged(bus, RUBRIC)
    judged = await bus.history(SUBJECTS.judged, SUBJECTS.judgements(None))
    assert [isinstance(record.message, Judgement) and record.message.verdict for record in judged] == [Verdict.SUCCESS] * 4
    assert len(model.asked) == len(await recorded(bus)) == 4


@pytest.mark.parametrize("is_told_first", [False, True])
async def test_a_paused_judge_that_is_told_to_leave_hands_back_what_it_cannot_judge(is_told_first: bool) -> None:
    bus, status = MemoryBus(SUBJECTS, BusConfig(), RUBRICS), Status(Role.JUDGE, WORKER)
    config = Config(judge_config=JudgeConfig(judge=RUBRIC, max_calls=2), bus_config=BusConfig(judge_ack_wait_s=2 * HANGS_S))

    async def told() -> Answer:
        while not status.drain.requested:
            depth = await bus.depth(trajectory_queue(SUBJECTS, config.bus_config, RUBRIC))
            assert depth is not None
            if depth.num_in_flight == 4:
                status.drain.request()
            await anyio.lowlevel.checkpoint()
        return YES

    for name in ("t1", "t2", "t3", "t4"):
        await publish_trajectory(bus, SUBJECTS, trajectory(task(name)))
    model = Model(lambda _: told() if is_told_first else YES)
    async with judge_sessions(bus, model, judge=config.judge_config, status=status) as sessions:
        worker = JudgeWorker(WorkerContext(bus, SUBJECTS, status), config, SessionJudge(sessions))
        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                group.start_soon(worker.run)
                while status.state != "paused":
                    await anyio.lowlevel.checkpoint()
                status.drain.request()
    assert len(await bus.subjects(SUBJECTS.judged, SUBJECTS.judgements(None))) == 2

    async with judge_sessions(bus, model) as sessions, judging(bus, SessionJudge(sessions)):
        await all_acknowledged(bus, RUBRIC)
    judged = await bus.history(SUBJECTS.judged, SUBJECTS.judgements(None))
    assert [isinstance(record.message, Judgement) and record.message.verdict for record in judged] == [Verdict.SUCCESS] * 4
    assert len(model.asked) == 4


async def test_a_worker_that_stops_hands_back_what_it_judges() -> None:
    bus, judge, status = MemoryBus(SUBJECTS, BusConfig(), RUBRICS), WaitingJudge(), Status(Role.JUDGE, WORKER)
    await publish_trajectory(bus, SUBJECTS, trajectory(task()))
    with anyio.fail_after(HANGS_S):
        async with judging(bus, judge, status=status):
            await judge.begun.wait()
            assert (status.state, status.metrics["busy"]) == ("working", 1)
            assert status.metrics["slots"] > 1
        assert (status.state, status.metrics["busy"]) == ("waiting", 0)
        again = WaitingJudge()
        async with judging(bus, again):
            await again.begun.wait()


async def test_two_workers_judge_once() -> None:
    bus = MemoryBus(SUBJECTS, BusConfig(), RUBRICS)
    names = [f"t{number}" for number in range(30)]
    async with judging(bus, EnvironmentJudge()), judging(bus, EnvironmentJudge()):
        for name in names:
            await publish_trajectory(bus, SUBJECTS, trajectory(task(name)))
        async with bus.tail(SUBJECTS.judged, SUBJECTS.judgements(None)) as records:
            with anyio.fail_after(HANGS_S):
                for _ in names:
                    await anext(records)
    counts = await bus.subjects(SUBJECTS.judged, SUBJECTS.judgements(None))
    assert len(counts) == len(names)
    assert set(counts.values()) == {1}


class VerboseJudge:
    """Says more than a message holds."""

    name = "verbose_v1"

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        return Ruling(verdict=Verdict.SUCCESS, reward=1.0, stages=(StageVerdict("reasoning", True, "because " * 20_000),) * 9)


async def test_a_judgement_that_no_message_holds_is_an_error_without_a_reward() -> None:
    bus = MemoryBus(SUBJECTS, BusConfig(max_payload_bytes=100_000), (VerboseJudge.name,))
    async with judging(bus, VerboseJudge()):
        await publish_trajectory(bus, SUBJECTS, trajectory(task()))
        judgement = await first_judgement(bus)
    assert (judgement.verdict, judgement.reward) == (Verdict.ERROR, None)
    assert "exceed" in judgement.error


async def test_a_judgement_that_cannot_be_encoded_is_an_error_that_keeps_its_accounts() -> None:
    usage = (StageUsage(stage="criterion_a", model="m", num_calls=3),)
    ruling = scored(passed=True, stages=(StageVerdict(b"criterion_a", True),), usage=usage)  # type: ignore[arg-type]
    given = await judged_by(RulingJudge(ruling), trajectory(task()))
    assert (given.verdict, given.reward, given.usage) == (Verdict.ERROR, None, usage)
    assert "cannot be written" in given.error


async def test_a_reasoning_that_is_no_valid_text_costs_no_verdict() -> None:
    ruling = scored(passed=True, stages=(StageVerdict("criterion_a", True, "\x1b[2Jbecause\ud83d\x00" + "y" * 1_000_000),))
    given = await judged_by(RulingJudge(ruling), trajectory(task()))
    assert (given.verdict, given.reward) == (Verdict.SUCCESS, 1.0)
    assert given.stages[0].reasoning == ("\ufffd[2Jbecause\ufffd\ufffd" + "y" * 1_000_000)[:20_000]


@pytest.mark.parametrize(
    "ruling",
    [
        Ruling(verdict=Verdict.SUCCESS, reward=True),
        Ruling(verdict=Verdict.SUCCESS, reward=1.0, stages=(StageVerdict("seen", passed=1),)),  # type: ignore[arg-type]
        Ruling(verdict=Verdict.SUCCESS, reward=1.0, stages=(object(),)),  # type: ignore[arg-type]
        Ruling(verdict=Verdict.SUCCESS, reward=1.0, error=2**70),  # type: ignore[arg-type]
        scored(passed=True, usage=(StageUsage(stage="seen", model="m", num_calls="3"),)),  # type: ignore[arg-type]
        scored(passed=True, usage=(StageUsage(stage="seen", model="m" * 200_000),)),
    ],
)
async def test_what_a_person_wrote_wrongly_is_an_error_that_everybody_can_read(ruling: Ruling) -> None:
    bus = MemoryBus(SUBJECTS, BusConfig(max_payload_bytes=100_000), RUBRICS)
    async with judging(bus, RulingJudge(ruling)):
        await publish_trajectory(bus, SUBJECTS, trajectory(task()))
        given = await first_judgement(bus)
        await all_acknowledged(bus, RulingJudge.name)
    assert (given.verdict, given.reward) == (Verdict.ERROR, None)
    assert given.error


@pytest.mark.parametrize(
    "contradiction",
    [
        {"verdict": Verdict.ERROR, "reward": 1.0},
        {"verdict": Verdict.EXCLUDED, "reward": 0.0},
        {"verdict": Verdict.SUCCESS, "reward": None},
        {"verdict": "success", "reward": 1.0},
        {"verdict": Verdict.SUCCESS, "reward": math.nan},
        {"verdict": Verdict.SUCCESS, "reward": math.inf},
        {"verdict": Verdict.SUCCESS, "reward": 1.0, "blocked": True},
        {"verdict": Verdict.SUCCESS, "reward": 1.0, "curable": True},
        {"verdict": Verdict.SUCCESS, "reward": 1.0, "parts": (RewardPart("outcome", 0.5),)},
        {"verdict": Verdict.SUCCESS, "reward": 1.0, "parts": (RewardPart("outcome", 1.0, (math.nan,)),)},
    ],
)
def test_a_ruling_does_not_contradict_itself(contradiction: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Ruling(**contradiction)


async def test_nothing_waits_unbegun_at_a_busy_judge() -> None:
    bus, judge = MemoryBus(SUBJECTS, BusConfig(), RUBRICS), FailingJudge(num_failures=0)
    prefetched = list[int]()
    work = bus.work

    def noted(queue: WorkQueue, *, prefetch: int) -> AbstractAsyncContextManager[Inbox]:
        prefetched.append(prefetch)
        return work(queue, prefetch=prefetch)

    bus.work = noted  # type: ignore[method-assign]
    async with judging(bus, judge):
        await publish_trajectory(bus, SUBJECTS, trajectory(task()))
        await first_judgement(bus)
    assert prefetched == [0]
