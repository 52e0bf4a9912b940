"""Questions become recorded answers: asked once, whoever asks, and never taken for a verdict when they hold none."""

from dataclasses import replace

import anyio
import pytest
from msgspec import structs

from bus.memory import MemoryBus
from bus.presence import Status
from bus.retry import Backoff
from bus.trying import LOOKS
from judges.endpoint.port import Answer, Question, Unanswered
from judges.rubric.journal import Journal, digest_of
from schemas.errors import BusUnavailable, ConfigurationError, NoVerdict
from schemas.ids import WorkerId
from schemas.judge_config import JudgeConfig, OpenAIConfig, Price
from schemas.messages import AskedQuestion, JudgeCall, Role, Screenshot
from tests.builders import task, trajectory
from tests.deadlines import HANGS_S
from tests.support.bus.lagging import LaggingBus
from tests.support.judging.sessions import (
    NEITHER,
    NO,
    RUBRIC,
    SUBJECTS,
    YES,
    Model,
    in_turn,
    inquiry,
    judge_sessions,
    recorded,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("unhurried"),
]
EPISODE = trajectory(task())
CUT = Answer(text="ye", finish_reason="length")


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause between askings."""
    monkeypatch.setattr("judges.rubric.session._ASKED_AGAIN", Backoff(0.0, 0.0))


def silent(_: str) -> Answer:
    raise AssertionError("nothing was to be asked")


async def test_a_question_is_asked_once_and_its_answer_stands() -> None:
    bus, model = MemoryBus(SUBJECTS), Model(lambda _: NO)
    async with judge_sessions(bus, model) as sessions:
        session = await sessions.begin(EPISODE)
        first, second = await session.ask(inquiry()), await session.ask(inquiry())

    assert (first.passed, first.reasoning) == (False, "it said no")
    assert second == first
    assert model.asked == ["did it?"]
    [call] = await recorded(bus)
    assert (call.rubric, call.episode, call.stage, call.answer) == (RUBRIC, EPISODE.episode, "criterion_a", 0)
    assert (call.model, call.text, call.accepted, call.judge) == ("model-a", "no", True, "judge-1")


async def test_it_says_which_questions_were_answered_and_how_they_were_asked() -> None:
    bus = MemoryBus(SUBJECTS)
    warm = replace(YES, temperature=0.5)
    asked = AskedQuestion(stage="seen", model="model-a", temperature=0.5, screenshots=(2, 4))
    async with judge_sessions(bus, Model(in_turn(NEITHER, warm, NEITHER, NEITHER)), openai=OpenAIConfig(max_answers=2)) as one:
        session = await one.begin(EPISODE)
        assert not session.answered
        await session.ask(replace(inquiry(stage="seen"), screenshots=(2, 4)))
        with pytest.raises(NoVerdict):
            await session.ask(inquiry("and that?"))
        assert session.answered == (asked,)
    async with judge_sessions(bus, Model(silent), worker="judge-2") as two:
        session = await two.begin(EPISODE)
        assert not session.answered
        await session.ask(replace(inquiry(stage="seen"), screenshots=(2, 4)))
        assert session.answered == (asked,)


async def test_who_takes_over_asks_nothing_again() -> None:
    bus, texts = MemoryBus(SUBJECTS), ("one", "two", "three")
    async with judge_sessions(bus, Model(lambda _: YES)) as sessions:
        session = await sessions.begin(EPISODE)
        before = [await session.ask(inquiry(text)) for text in texts]
        usage = session.usage

    async with judge_sessions(bus, Model(silent), worker="judge-2") as sessions:
        session = await sessions.begin(EPISODE)
        assert [await session.ask(inquiry(text)) for text in texts] == before
        assert session.usage == usage
        assert sum(stage.num_calls for stage in usage) == 3


async def test_what_another_judge_of_the_rubric_asked_is_not_its_account() -> None:
    bus, model = MemoryBus(SUBJECTS), Model(lambda _: YES)
    async with judge_sessions(bus, model) as sessions:
        first = await sessions.begin(EPISODE)
        await first.ask(inquiry("one", stage="part_1"))
        second = await sessions.begin(EPISODE)
        await second.ask(inquiry("two", stage="part_2"))
    assert [(usage.stage, usage.num_calls) for usage in (*first.usage, *second.usage)] == [("part_1", 1), ("part_2", 1)]
    assert [asked.stage for asked in (*first.answered, *second.answered)] == ["part_1", "part_2"]


async def test_a_question_without_any_answer_is_named_and_accounted_for() -> None:
    def away(text: str) -> Answer:
        if text == "seen?":
            return YES
        raise Unanswered("http://127.0.0.1/v1 (model 'm') gave no answer", 7)

    bus, status = MemoryBus(SUBJECTS), Status(Role.JUDGE, WorkerId("judge-1"))
    async with judge_sessions(bus, Model(away), status=status) as sessions:
        session = await sessions.begin(EPISODE)
        await session.ask(inquiry("seen?"))
        for stage in ("criterion_a", "blocking"):
            with pytest.raises(NoVerdict, match=rf"^{stage}: http://127.0.0.1/v1 \(model 'm'\) gave no answer$"):
                await session.ask(inquiry("did it?", stage=stage))
    assert [(usage.stage, usage.model, usage.num_calls, usage.num_failures) for usage in session.usage] == [
        ("criterion_a", "model-a", 1, 7),
        ("blocking", "model-a", 0, 7),
    ]
    assert status.metrics["failed_requests"] == 14


async def test_another_episode_or_rubric_is_asked_for_itself() -> None:
    bus, model = MemoryBus(SUBJECTS), Model(lambda _: YES)
    async with judge_sessions(bus, model) as one, judge_sessions(bus, model, rubric="other_v1") as other:
        await (await one.begin(EPISODE)).ask(inquiry())
        await (await one.begin(trajectory(task("t2")))).ask(inquiry())
        await (await other.begin(EPISODE)).ask(inquiry())
    assert len(model.asked) == len(await recorded(bus)) == 3


async def test_answers_without_a_verdict_are_counted_across_a_takeover() -> None:
    bus, config = MemoryBus(SUBJECTS), OpenAIConfig(max_answers=3)
    killed = Model(in_turn(NEITHER, NEITHER))
    async with judge_sessions(bus, killed, openai=config) as sessions:
        with pytest.raises(RuntimeError):
            await (await sessions.begin(EPISODE)).ask(inquiry())

    taking_over = Model(lambda _: NEITHER)
    async with judge_sessions(bus, taking_over, openai=config, worker="judge-2") as sessions:
        with pytest.raises(NoVerdict, match=r"criterion_a: 3 answers hold no verdict, the last: 'perhaps' is neither"):
            await (await sessions.begin(EPISODE)).ask(inquiry())

    assert (len(killed.asked), len(taking_over.asked)) == (3, 1)
    assert [(call.answer, call.accepted) for call in await recorded(bus)] == [(0, False), (1, False), (2, False)]
    async with judge_sessions(bus, Model(silent), openai=config) as sessions:
        with pytest.raises(NoVerdict):
            await (await sessions.begin(EPISODE)).ask(inquiry())


async def test_a_verdict_after_others_without_one_is_used() -> None:
    bus, model = MemoryBus(SUBJECTS), Model(in_turn(NEITHER, Answer(text=" ", finish_reason="stop"), YES))
    async with judge_sessions(bus, model) as sessions:
        assert (await (await sessions.begin(EPISODE)).ask(inquiry())).passed
    async with judge_sessions(bus, Model(silent)) as sessions:
        assert (await (await sessions.begin(EPISODE)).ask(inquiry())).passed


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(text="yes", finish_reason="length"), "cut off"),
        (Answer(text="yes", finish_reason="content_filter"), "filter"),
        (Answer(text="", finish_reason="stop"), "empty"),
        (Answer(text="yes" + " " * 200_000, finish_reason="stop"), "cut off"),
        (Answer(text="yes\ud800", finish_reason="stop"), "neither yes nor no"),
    ],
)
async def test_what_is_no_verdict_is_recorded_as_none(answer: Answer, reason: str) -> None:
    bus = MemoryBus(SUBJECTS)
    async with judge_sessions(bus, Model(lambda _: answer), openai=OpenAIConfig(max_answers=1)) as sessions:
        with pytest.raises(NoVerdict, match=reason):
            await (await sessions.begin(EPISODE)).ask(inquiry())
    [call] = await recorded(bus)
    assert not call.accepted
    assert len(call.text) <= 200_000
    async with judge_sessions(bus, Model(silent), openai=OpenAIConfig(max_answers=1)) as sessions:
        with pytest.raises(NoVerdict, match=reason):
            await (await sessions.begin(EPISODE)).ask(inquiry())


async def test_who_was_cut_off_may_say_more_and_a_takeover_remembers() -> None:
    bus, config = MemoryBus(SUBJECTS), OpenAIConfig(max_answers=9, max_completion_tokens=100)
    killed = Model(in_turn(CUT, NEITHER))
    async with judge_sessions(bus, killed, openai=config) as sessions:
        with pytest.raises(RuntimeError):
            await (await sessions.begin(EPISODE)).ask(inquiry())
    taking_over = Model(in_turn(CUT, CUT, YES))
    async with judge_sessions(bus, taking_over, openai=config) as sessions:
        await (await sessions.begin(EPISODE)).ask(inquiry())
    assert killed.max_tokens == [100, 200, 200]
    assert taking_over.max_tokens == [200, 400, 400]


async def test_asked_several_times_at_once_it_is_asked_once() -> None:
    released = anyio.Event()

    async def answer() -> Answer:
        await released.wait()
        return YES

    bus, model = MemoryBus(SUBJECTS), Model(lambda _: answer())
    async with judge_sessions(bus, model) as sessions:
        session = await sessions.begin(EPISODE)
        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(session.ask, inquiry())
                group.start_soon(session.ask, inquiry("another"))
                await anyio.wait_all_tasks_blocked()
                released.set()
    assert sorted(model.asked) == ["another", "did it?"]


async def test_who_answers_second_goes_by_the_first() -> None:
    """Two workers hold one trajectory, one of them silent for longer than its ack wait."""
    bus, asked = MemoryBus(SUBJECTS), [anyio.Event(), anyio.Event()]

    async def slow() -> Answer:
        asked[0].set()
        await asked[1].wait()
        return NO

    slow_model, quick_model = Model(lambda _: slow()), Model(lambda _: YES)
    async with judge_sessions(bus, slow_model) as one, judge_sessions(bus, quick_model, worker="judge-2") as two:
        first, second = await one.begin(EPISODE), await two.begin(EPISODE)
        found: list[bool] = []

        async def ask_slowly() -> None:
            found.append((await first.ask(inquiry())).passed)

        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                group.start_soon(ask_slowly)
                await asked[0].wait()
                found.append((await second.ask(inquiry())).passed)
                asked[1].set()
    assert found == [True, True]
    [call] = await recorded(bus)
    assert (call.text, call.judge) == ("yes", "judge-2")


async def test_an_answer_beside_one_without_a_verdict_stands_behind_it() -> None:
    bus = MemoryBus(SUBJECTS)

    async def meanwhile() -> Answer:
        async with judge_sessions(
            bus, Model(lambda _: NEITHER), openai=OpenAIConfig(max_answers=1), worker="judge-2"
        ) as other:
            with pytest.raises(NoVerdict):
                await (await other.begin(EPISODE)).ask(inquiry())
        return YES

    model = Model(lambda _: meanwhile())
    async with judge_sessions(bus, model) as sessions:
        assert (await (await sessions.begin(EPISODE)).ask(inquiry())).passed
    assert len(model.asked) == 1
    assert [(call.answer, call.text, call.judge) for call in await recorded(bus)] == [
        (0, "perhaps", "judge-2"),
        (1, "yes", "judge-1"),
    ]


async def test_what_a_lagging_replica_does_not_show_is_gone_by_all_the_same() -> None:
    """The first read shows nothing, so the question is asked again; then the server refuses the answer."""
    bus = LaggingBus(SUBJECTS)
    async with judge_sessions(bus, Model(lambda _: YES)) as sessions:
        await (await sessions.begin(EPISODE)).ask(inquiry())
    bus.show_nothing(3)
    model = Model(lambda _: NO)
    async with judge_sessions(bus, model, worker="judge-2") as sessions:
        session = await sessions.begin(EPISODE)
        assert (await session.ask(inquiry())).passed
    assert len(model.asked) == 1
    assert [call.text for call in await recorded(bus)] == ["yes"]


async def test_an_answer_that_cannot_be_seen_is_left_to_a_later_delivery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.trying.LOOKED_FOR", Backoff(0.0, 0.0))
    bus = LaggingBus(SUBJECTS)
    async with judge_sessions(bus, Model(lambda _: YES)) as sessions:
        await (await sessions.begin(EPISODE)).ask(inquiry())
    bus.show_nothing(2 + LOOKS)
    async with judge_sessions(bus, Model(lambda _: NO), worker="judge-2") as sessions:
        session = await sessions.begin(EPISODE)
        with pytest.raises(BusUnavailable, match="cannot be seen yet"):
            await session.ask(inquiry())


async def test_what_stands_is_found_at_once_where_it_was_written() -> None:
    bus, journal = MemoryBus(SUBJECTS), Journal(MemoryBus(SUBJECTS), SUBJECTS, rubric=RUBRIC, worker=WorkerId("judge-1"))
    assert await journal.about(EPISODE.episode) == {}
    journal = Journal(bus, SUBJECTS, rubric=RUBRIC, worker=WorkerId("judge-1"))
    call = JudgeCall(
        episode=EPISODE.episode, rubric=RUBRIC, stage="s", question="q", answer=0, model="m", text="yes", accepted=True
    )
    second = structs.replace(call, answer=1)
    assert (await journal.record(second)).is_own
    assert (await journal.record(call)).is_own
    stored = await journal.record(structs.replace(call, text="no"))
    assert (stored.is_own, stored.call) == (False, call)
    assert await journal.about(EPISODE.episode) == {"q": [call, second]}


def test_a_digest_names_everything_that_was_asked() -> None:
    def asked(**changes: object) -> Question:
        given: dict[str, object] = {"system": "s", "content": ("a", "b"), "schema_name": "n", "schema": {"x": 1, "y": 2}}
        return Question(**{**given, **changes})  # type: ignore[arg-type]

    screenshot = Screenshot(data=b"one", media_type="image/png", width=1, height=1)
    digests = [
        digest_of("m", asked(), 0),
        digest_of("other", asked(), 0),
        digest_of("m", asked(), 1),
        digest_of("m", asked(system="t"), 0),
        digest_of("m", asked(content=("ab",)), 0),
        digest_of("m", asked(content=("a", "b", screenshot)), 0),
        digest_of("m", asked(content=("a", "b", structs.replace(screenshot, data=b"two"))), 0),
        digest_of("m", asked(content=("a", screenshot, "b")), 0),
        digest_of("m", asked(schema={"x": 1}), 0),
    ]
    assert len(set(digests)) == len(digests)
    assert digest_of("m", asked(schema={"y": 2, "x": 1}), 0) == digests[0]


async def test_what_answers_took_is_summed_by_stage_and_model_and_told_in_the_heartbeat() -> None:
    said = Answer(
        text="yes",
        finish_reason="stop",
        prompt_tokens=1_000_000,
        cached_tokens=400_000,
        completion_tokens=100_000,
        num_failures=2,
        seconds=1.5,
    )
    prices = {"model-a": Price(input=1.0, cached_input=0.25, output=4.0)}
    status = Status(Role.JUDGE, WorkerId("judge-1"))
    model = Model(in_turn(replace(said, text="perhaps"), said, said))
    async with judge_sessions(MemoryBus(SUBJECTS), model, openai=OpenAIConfig(prices=prices), status=status) as sessions:
        session = await sessions.begin(EPISODE)
        await session.ask(inquiry("one", stage="keypoint"))
        await session.ask(inquiry("two", stage="criterion_b"))

    each = 0.6 * 1.0 + 0.4 * 0.25 + 0.1 * 4.0
    keypoint, criterion = session.usage
    assert (keypoint.stage, keypoint.num_calls, keypoint.num_failures, keypoint.seconds) == ("keypoint", 2, 4, 3.0)
    assert (keypoint.prompt_tokens, keypoint.cached_tokens, keypoint.completion_tokens) == (2_000_000, 800_000, 200_000)
    assert keypoint.cost == pytest.approx(2 * each)
    assert (criterion.stage, criterion.model, criterion.num_calls) == ("criterion_b", "model-a", 1)
    assert status.metrics == pytest.approx(
        {"calls": 3, "answers_without_verdict": 1, "failed_requests": 6, "tokens": 3_300_000, "cost": 3 * each}
    )


async def test_a_limit_on_cost_needs_the_price_of_every_model() -> None:
    model = Model(silent)
    with pytest.raises(ConfigurationError, match=r"no price for model-a: add it to openai_config\.prices"):
        async with judge_sessions(MemoryBus(SUBJECTS), model, judge=JudgeConfig(max_cost=1.0)):
            pass
