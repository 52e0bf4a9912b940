"""The run's budget of model calls: exact for one worker, shared by all, and a pause instead of a failure."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

import anyio
import msgspec
import pytest
import structlog

from bus.memory import MemoryBus
from bus.ports import Record
from bus.presence import Status
from judges.endpoint.port import Answer
from judges.rubric import budget as budget_module
from judges.rubric.accounts import cost_of
from judges.rubric.asking import JudgeSession
from judges.rubric.budget import Spending, open_budget
from judges.rubric.session import RecordedSessions
from schemas.bus_config import BusConfig
from schemas.errors import BusUnavailable, ConfigurationError, NoVerdict
from schemas.ids import EpisodeId, WorkerId
from schemas.judge_config import JudgeConfig, OpenAIConfig, Price
from schemas.messages import JudgeCall, JudgeSpending, Role
from tests.builders import task, trajectory
from tests.deadlines import HANGS_S
from tests.support.judging.sessions import SUBJECTS, YES, Model, in_turn, inquiry, judge_sessions, recorded
from tests.support.polling import until

pytestmark = pytest.mark.anyio
DEAR = Answer(text="yes", finish_reason="stop", prompt_tokens=1_000_000)
PRICED = OpenAIConfig(prices={"model-a": Price(input=1.0, output=1.0)})


def judge_status() -> Status:
    return Status(Role.JUDGE, WorkerId("judge-1"))


def call(cost: float = 0.0) -> JudgeCall:
    return JudgeCall(
        episode=EpisodeId("e"), rubric="r", stage="s", question="q", answer=0, model="m", text="", accepted=True, cost=cost
    )


async def test_a_cost_that_no_endpoint_tells_cannot_be_limited() -> None:
    bus = MemoryBus(SUBJECTS)
    async with judge_sessions(bus, Model(lambda _: YES), judge=JudgeConfig(max_cost=1.0), openai=PRICED) as sessions:
        with pytest.raises(ConfigurationError, match=r"endpoint of model-a does not say .* use judge_config.max_calls"):
            await (await sessions.begin(trajectory(task()))).ask(inquiry())
    assert len(await recorded(bus)) == 1


async def test_an_answer_that_does_not_say_what_it_took_counts_as_the_dearest_where_others_did() -> None:
    bus, status = MemoryBus(SUBJECTS), judge_status()
    model = Model(in_turn(DEAR, replace(DEAR, prompt_tokens=500_000), YES))
    async with judge_sessions(bus, model, judge=JudgeConfig(max_cost=2.5), openai=PRICED, status=status) as sessions:
        session = await sessions.begin(trajectory(task()))
        for number in range(3):
            await session.ask(inquiry(f"question {number}"))
        async with anyio.create_task_group() as group:
            group.start_soon(session.ask, inquiry("one too many"))
            await settled(lambda: status.state == "paused")
            group.cancel_scope.cancel()
    assert [each.cost for each in await recorded(bus)] == [1.0, 0.5, 1.0]
    assert status.note.startswith("calls cost 2.5")


@pytest.mark.parametrize(
    ("answer", "price", "cost"),
    [
        (Answer(text="", finish_reason="stop", prompt_tokens=3_000_000), Price(input=2.0, output=9.0), 6.0),
        (Answer(text="", finish_reason="stop", completion_tokens=500_000), Price(input=2.0, output=9.0), 4.5),
        (
            Answer(text="", finish_reason="stop", prompt_tokens=3_000_000, cached_tokens=2_000_000),
            Price(input=2.0, output=9.0, cached_input=0.5),
            3.0,
        ),
        (
            Answer(text="", finish_reason="stop", prompt_tokens=3_000_000, cached_tokens=2_000_000),
            Price(input=2.0, output=9.0),
            6.0,
        ),
        (Answer(text="", finish_reason="stop", prompt_tokens=3_000_000), None, 0.0),
    ],
)
def test_the_cost_of_an_answer(answer: Answer, price: Price | None, cost: float) -> None:
    assert cost_of(answer, price) == pytest.approx(cost)


@pytest.mark.parametrize(
    ("config", "costs", "num_under_way", "allowed"),
    [
        (JudgeConfig(), (1.0,) * 9, 9, True),
        (JudgeConfig(max_calls=3), (0.0, 0.0), 0, True),
        (JudgeConfig(max_calls=3), (0.0, 0.0), 1, False),
        (JudgeConfig(max_calls=3), (0.0, 0.0, 0.0), 0, False),
        (JudgeConfig(max_cost=3.0), (), 0, True),
        (JudgeConfig(max_cost=3.0), (), 1, False),
        (JudgeConfig(max_cost=3.0), (1.0,), 1, True),
        (JudgeConfig(max_cost=3.0), (1.0,), 2, False),
        (JudgeConfig(max_cost=3.0), (1.0, 1.0), 0, True),
        (JudgeConfig(max_cost=3.0), (1.0, 1.0), 1, False),
        (JudgeConfig(max_cost=3.0), (0.0,), 50, True),
        (JudgeConfig(max_cost=3.0, max_calls=1), (0.0,), 0, False),
    ],
)
def test_when_one_more_call_may_be_made(
    config: JudgeConfig, costs: tuple[float, ...], num_under_way: int, allowed: bool
) -> None:
    spending = Spending()
    for cost in costs:
        spending.add(call(cost))
    assert spending.allows_one_more(config, num_under_way) is allowed


async def ask_all(sessions: RecordedSessions, episode: str, num_questions: int) -> None:
    session = await sessions.begin(trajectory(task(episode)))
    async with anyio.create_task_group() as group:
        for number in range(num_questions):
            group.start_soon(session.ask, inquiry(f"question {number}"))


async def settled(is_settled: Callable[[], bool]) -> None:
    with anyio.fail_after(HANGS_S):
        while not is_settled():
            await anyio.wait_all_tasks_blocked()


@pytest.mark.parametrize(
    ("config", "answer", "num_calls", "words"),
    [
        (JudgeConfig(max_calls=7), YES, 7, "7 calls were made: raise judge_config.max_calls (7)"),
        (JudgeConfig(max_cost=4.0), DEAR, 4, "calls cost 4: raise judge_config.max_cost (4)"),
    ],
)
async def test_a_run_pauses_at_its_limit_and_goes_on_with_a_higher_one(
    config: JudgeConfig, answer: Answer, num_calls: int, words: str
) -> None:
    bus, model, status = MemoryBus(SUBJECTS), Model(lambda _: answer), judge_status()
    with structlog.testing.capture_logs() as logs:
        async with (
            judge_sessions(bus, model, judge=config, openai=PRICED, status=status) as sessions,
            anyio.create_task_group() as group,
        ):
            group.start_soon(ask_all, sessions, "one", 20)
            await settled(lambda: status.state == "paused")
            await anyio.wait_all_tasks_blocked()
            assert len(model.asked) == len(await recorded(bus)) == num_calls
            group.cancel_scope.cancel()
    assert status.note == f"{words} and start the judges again; nothing is lost"
    assert [log["event"] for log in logs].count("judging_paused") == 1

    more, again = Model(lambda _: answer), judge_status()
    async with judge_sessions(bus, more, judge=JudgeConfig(max_calls=20), openai=PRICED, status=again) as sessions:
        with anyio.fail_after(HANGS_S):
            await ask_all(sessions, "one", 20)
    assert sorted(model.asked + more.asked) == sorted(f"question {number}" for number in range(20))
    assert again.state != "paused"


async def test_the_sum_is_over_rubrics_and_workers() -> None:
    bus, config = MemoryBus(SUBJECTS), JudgeConfig(max_calls=10)
    async with judge_sessions(bus, Model(lambda _: YES)) as sessions:
        await ask_all(sessions, "before", 4)
    one, two = Model(lambda _: YES), Model(lambda _: YES)
    statuses = [judge_status(), judge_status()]
    async with (
        judge_sessions(bus, one, judge=config, status=statuses[0]) as first,
        judge_sessions(bus, two, judge=config, status=statuses[1], rubric="other_v1", worker="judge-2") as second,
        anyio.create_task_group() as group,
    ):
        group.start_soon(ask_all, first, "one", 30)
        group.start_soon(ask_all, second, "two", 30)
        await settled(lambda: all(status.state == "paused" for status in statuses))
        num_asked = len(one.asked) + len(two.asked)
        group.cancel_scope.cancel()
    # Each may pass the limit by what the other has under way: six at most.
    assert 6 <= num_asked <= 12
    assert len(await recorded(bus)) == num_asked + 4


async def test_calls_one_after_the_other_come_to_the_limit_exactly_whoever_makes_them() -> None:
    bus, config = MemoryBus(SUBJECTS), JudgeConfig(max_calls=10)
    models = [Model(lambda _: YES), Model(lambda _: YES)]
    statuses = [judge_status(), judge_status()]
    async with (
        judge_sessions(bus, models[0], judge=config, status=statuses[0]) as first,
        judge_sessions(bus, models[1], judge=config, status=statuses[1], worker="judge-2") as second,
    ):
        opened = [await first.begin(trajectory(task("one"))), await second.begin(trajectory(task("two")))]
        for number in range(5):
            for session in opened:
                await session.ask(inquiry(f"question {number}"))
        async with anyio.create_task_group() as group:
            for session in opened:
                group.start_soon(session.ask, inquiry("one too many"))
            await settled(lambda: all(status.state == "paused" for status in statuses))
            group.cancel_scope.cancel()
    assert [len(model.asked) for model in models] == [5, 5]


async def test_calls_under_way_count_and_one_without_an_answer_gives_its_place_back() -> None:
    failed = anyio.Event()

    async def fails() -> Answer:
        await failed.wait()
        raise NoVerdict("the endpoint is away")

    bus, status = MemoryBus(SUBJECTS), judge_status()
    model = Model(lambda text: fails() if text == "question 0" else YES)
    async with judge_sessions(bus, model, judge=JudgeConfig(max_calls=1), status=status) as sessions:
        session: JudgeSession = await sessions.begin(trajectory(task()))

        async def ask_in_vain() -> None:
            with pytest.raises(NoVerdict):
                await session.ask(inquiry("question 0"))

        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                group.start_soon(ask_in_vain)
                await anyio.wait_all_tasks_blocked()
                group.start_soon(session.ask, inquiry("question 1"))
                await anyio.wait_all_tasks_blocked()
                assert model.asked == ["question 0"]
                assert status.state != "paused"
                failed.set()
    assert model.asked == ["question 0", "question 1"]


async def test_a_paused_judge_still_uses_what_was_answered() -> None:
    bus, status = MemoryBus(SUBJECTS), judge_status()
    async with judge_sessions(bus, Model(lambda _: YES)) as sessions:
        await ask_all(sessions, "one", 3)
    model = Model(lambda _: YES)
    async with (
        judge_sessions(bus, model, judge=JudgeConfig(max_calls=3), status=status) as sessions,
        anyio.create_task_group() as group,
    ):
        group.start_soon(ask_all, sessions, "two", 1)
        await settled(lambda: status.state == "paused")
        with anyio.fail_after(HANGS_S):
            await ask_all(sessions, "one", 3)
        group.cancel_scope.cancel()
    assert model.asked == []


async def test_a_record_that_cannot_be_read_stops_nobody() -> None:
    bus, model, status = MemoryBus(SUBJECTS), Model(lambda _: YES), judge_status()
    async with judge_sessions(bus, model) as sessions:
        await ask_all(sessions, "before", 2)
    newest = (await bus.history(SUBJECTS.calls, SUBJECTS.everything("call")))[-1]
    bus.store(SUBJECTS.calls, f"{newest.subject.rpartition('.')[0]}.99", b"\xc1")
    with structlog.testing.capture_logs() as logs:
        async with (
            judge_sessions(bus, model, judge=JudgeConfig(max_calls=5), status=status) as sessions,
            anyio.create_task_group() as group,
        ):
            group.start_soon(ask_all, sessions, "one", 20)
            await settled(lambda: status.state == "paused")
            group.cancel_scope.cancel()
    assert len(model.asked) == 5
    assert {log["seq"] for log in logs if log["event"] == "record_skipped"} == {newest.seq + 1}


async def test_a_bus_that_is_away_for_a_while_does_not_end_the_count() -> None:
    bus, model, status = MemoryBus(SUBJECTS), Model(lambda _: YES), judge_status()
    tail, failures = bus.tail, iter([BusUnavailable("no server"), BusUnavailable("no server")])

    def unsteady(
        stream: str, subject_filter: str, *, after_seq: int = 0
    ) -> AbstractAsyncContextManager[AsyncIterator[Record]]:
        if error := next(failures, None):
            raise error
        return tail(stream, subject_filter, after_seq=after_seq)

    async with judge_sessions(bus, model) as sessions:
        await ask_all(sessions, "before", 2)
    bus.tail = unsteady  # type: ignore[method-assign,assignment]
    async with (
        judge_sessions(bus, model, judge=JudgeConfig(max_calls=5), status=status) as sessions,
        anyio.create_task_group() as group,
    ):
        group.start_soon(ask_all, sessions, "one", 20)
        await settled(lambda: status.state == "paused")
        group.cancel_scope.cancel()
    assert next(failures, None) is None
    assert len(model.asked) == 5


async def test_what_was_spent_stays_spent_when_its_calls_have_aged_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_module, "_SAY_S", 0.01)
    now = [time.time()]
    bus = MemoryBus(SUBJECTS, BusConfig(run=SUBJECTS.run), clock=lambda: now[0])
    config = JudgeConfig(max_calls=11)
    async with open_budget(bus, SUBJECTS, config, judge_status()):
        for number in range(10):
            stored = msgspec.structs.replace(call(0.5), answer=number)
            await bus.append(SUBJECTS.calls, SUBJECTS.call("r", EpisodeId("e"), "q", number), stored)

        async def is_written() -> bool:
            said = await bus.last(SUBJECTS.feeding, SUBJECTS.spent)
            return said is not None and said.message == JudgeSpending(calls_seq=10, num_calls=10, cost=5.0, dearest=0.5)

        await until(is_written)
    for _ in range(2):
        now[0] += 31 * 86400
        status = judge_status()
        async with open_budget(bus, SUBJECTS, config, status) as budget, budget.call():
            with anyio.move_on_after(0.1):
                async with budget.call():
                    raise AssertionError
    assert await bus.last_seq(SUBJECTS.calls) == 10


async def test_calls_that_were_lost_with_a_servers_power_are_counted_and_so_are_those_that_follow() -> None:
    bus = MemoryBus(SUBJECTS)
    await bus.append(SUBJECTS.feeding, SUBJECTS.spent, JudgeSpending(calls_seq=40, num_calls=40))
    await bus.append(SUBJECTS.calls, SUBJECTS.call("r", EpisodeId("e"), "q", 0), call())
    status = judge_status()
    async with open_budget(bus, SUBJECTS, JudgeConfig(max_calls=41), status) as budget:
        await bus.append(SUBJECTS.calls, SUBJECTS.call("r", EpisodeId("e"), "q", 1), msgspec.structs.replace(call(), answer=1))

        async def is_paused() -> bool:
            with anyio.move_on_after(0.01):
                async with budget.call():
                    pass
            return status.state == "paused"

        await until(is_paused)
    assert "41 calls were made" in status.note
