"""A published evaluator's questions are recorded, asked once, and paid for from the run's budget."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import anyio
import anyio.lowlevel
import pytest

from bus.memory import MemoryBus
from bus.presence import Status
from bus.retry import Backoff
from judges.composite import CompositeJudge
from judges.endpoint.port import Answer, Question
from judges.judge import Ruling
from judges.published.judge import PublishedJudge
from judges.rubric.asking import Inquiry, QuestionKind
from schemas.ids import WorkerId
from schemas.judge_config import Composite, JudgeConfig, OpenAIConfig
from schemas.messages import Role, Verdict
from tests.deadlines import HANGS_S
from tests.support.judging.published_world import EVALUATORS, PROMPTS, answer, decides
from tests.support.judging.rubric_world import episode, rubric_task, seen
from tests.support.judging.sessions import SUBJECTS, judge_sessions, read_word, recorded

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("unhurried")]
OF = rubric_task(num_facts=0)
_SCREENSHOTS = (b"start", b"list", b"list", b"lamp")


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause between askings."""
    monkeypatch.setattr("judges.rubric.session._ASKED_AGAIN", Backoff(0.0, 0.0))


def _asking(question: Question) -> Inquiry:
    return Inquiry(kind=QuestionKind.EVALUATION, stage="", question=question, read=read_word)


@dataclass
class Speaking:
    """An endpoint whose answers are good, but for what `spoils` makes of them."""

    spoils: Callable[[Question, Answer], Answer] = lambda _, said: said
    model: str = "model-a"
    asked: list[Question] = field(default_factory=list)

    async def ask(self, question: Question, *, max_completion_tokens: int) -> Answer:
        self.asked.append(question)
        await anyio.lowlevel.checkpoint()
        said = Answer(text=answer(_asking(question)), finish_reason="stop", prompt_tokens=10, temperature=0.0)
        return self.spoils(question, said)


async def _judged(
    name: str, bus: MemoryBus, endpoint: Speaking, *, worker: str = "judge-1", status: Status | None = None, max_calls: int = 0
) -> Ruling:
    config = JudgeConfig(judge=name, max_calls=max_calls)
    openai = OpenAIConfig(max_answers=2)
    async with judge_sessions(
        bus, endpoint, judge=config, openai=openai, worker=worker, status=status, rubric=name
    ) as sessions:
        judge = PublishedJudge(name, EVALUATORS[name], sessions, PROMPTS[name], config)
        return await judge.judge(episode(OF, seen(OF, _SCREENSHOTS)))


@pytest.mark.parametrize("name", EVALUATORS)
async def test_every_question_is_recorded_and_asked_once_whoever_judges(name: str) -> None:
    bus, first, second = MemoryBus(SUBJECTS), Speaking(), Speaking()
    ruling = await _judged(name, bus, first)
    again = await _judged(name, bus, second, worker="judge-2")
    calls = await recorded(bus)
    assert (ruling.verdict, len(calls)) == (Verdict.SUCCESS, len(first.asked))
    assert {(call.rubric, call.accepted, call.temperature) for call in calls} == {(name, True, 0.0)}
    assert (second.asked, again.stages, again.usage) == ([], ruling.stages, ruling.usage)
    assert [len(protocol.questions) for protocol in again.protocols] == [len(calls)]


async def test_parts_of_a_composite_account_for_their_own_questions() -> None:
    bus, endpoint = MemoryBus(SUBJECTS), Speaking()
    names = ("webjudge_v1", "agenttrek_v1", "webvoyager_v1")
    config = JudgeConfig(judge="all_v1", composites={"all_v1": Composite(parts=dict.fromkeys(names, 1.0))})
    async with judge_sessions(bus, endpoint, judge=config, rubric="all_v1") as sessions:
        judges = [PublishedJudge(name, EVALUATORS[name], sessions, PROMPTS[name], config) for name in names]
        whole = CompositeJudge("all_v1", config.composites["all_v1"], judges)
        ruling = await whole.judge(episode(OF, seen(OF, _SCREENSHOTS)))
        again = await whole.judge(episode(OF, seen(OF, _SCREENSHOTS)))
    calls = await recorded(bus)
    assert len(calls) == len(endpoint.asked)
    assert sum(usage.num_calls for usage in ruling.usage) == len(calls)
    assert [(protocol.judge, len(protocol.questions)) for protocol in ruling.protocols] == [
        ("webjudge_v1", len(calls) - 2),
        ("agenttrek_v1", 1),
        ("webvoyager_v1", 1),
    ]
    assert (again.usage, again.protocols) == (ruling.usage, ruling.protocols)


@pytest.mark.parametrize(("name", "num_calls"), [("webjudge_v1", 5), ("universal_verifier_v1", 8)])
async def test_equal_screenshots_are_one_question(name: str, num_calls: int) -> None:
    endpoint = Speaking()
    await _judged(name, MemoryBus(SUBJECTS), endpoint)
    assert len(endpoint.asked) == num_calls


@pytest.mark.parametrize("name", EVALUATORS)
async def test_at_the_runs_limit_it_pauses_and_goes_on_from_there(name: str) -> None:
    bus, every = MemoryBus(SUBJECTS), Speaking()
    await _judged(name, MemoryBus(SUBJECTS), every)
    limit = len(every.asked) - 1
    before, after = Speaking(), Speaking()
    status = Status(Role.JUDGE, WorkerId("judge-1"))
    if limit:
        async with anyio.create_task_group() as group:

            async def judge() -> None:
                await _judged(name, bus, before, status=status, max_calls=limit)
                raise AssertionError("it came to an end beyond its budget")

            group.start_soon(judge)
            with anyio.fail_after(HANGS_S):
                while status.state != "paused":
                    await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        assert len(before.asked) == limit
    ruling = await _judged(name, bus, after, worker="judge-2", max_calls=limit + 1)
    assert ruling.verdict is Verdict.SUCCESS
    assert len(after.asked) == 1


@pytest.mark.parametrize("finish_reason", ["length", "content_filter"])
@pytest.mark.parametrize("name", EVALUATORS)
async def test_an_answer_that_was_cut_off_or_kept_back_is_no_verdict_though_it_reads_like_one(
    name: str, finish_reason: str
) -> None:
    def spoils(question: Question, said: Answer) -> Answer:
        return replace(said, finish_reason=finish_reason) if decides(_asking(question)) else said

    ruling = await _judged(name, MemoryBus(SUBJECTS), Speaking(spoils))
    assert (ruling.verdict, ruling.reward) == (Verdict.ERROR, None)
    assert "2 answers hold no verdict" in ruling.error


@pytest.mark.parametrize("reason", ["length", "content_filter"])
@pytest.mark.parametrize(
    ("name", "stage"), [("webjudge_v1", "screenshot_score"), ("universal_verifier_v1", "screenshot_relevance")]
)
async def test_one_screenshot_that_cannot_be_scored_is_no_error_and_all_are(name: str, stage: str, reason: str) -> None:
    def spoils(*lost: bytes) -> Callable[[Question, Answer], Answer]:
        def spoil(question: Question, said: Answer) -> Answer:
            shown = [part.data for part in question.content if not isinstance(part, str)]
            is_lost = question.schema_name == stage and shown[0] in lost
            return replace(said, finish_reason=reason) if is_lost else said

        return spoil

    ruling = await _judged(name, MemoryBus(SUBJECTS), Speaking(spoils(b"lamp")))
    assert ruling.verdict is Verdict.SUCCESS
    assert "(no usable answer)" in ruling.stages[1].reasoning
    ruling = await _judged(name, MemoryBus(SUBJECTS), Speaking(spoils(*_SCREENSHOTS)))
    assert (ruling.verdict, ruling.reward) == (Verdict.ERROR, None)
