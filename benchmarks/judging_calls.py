"""Calls, tokens and cost of a judgement by kind of trajectory: the staged judge beside two other ways to ask the same."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final

from benchmarks.judge_questions import QuestionFirst, webgym_order
from benchmarks.judged_episodes import REASONING, VERDICTS, Ended, Kind, ended, noise, schema_name_of, verdict_word
from benchmarks.report import Report
from bus.memory import MemoryBus
from bus.presence import Status
from judges.endpoint.opening import open_endpoints
from judges.endpoint.port import Endpoint
from judges.judge import Ruling
from judges.rubric.budget import open_budget
from judges.rubric.journal import Journal
from judges.rubric.judge import RubricJudge
from judges.rubric.prompts import committed_prompts
from judges.rubric.session import RecordedSessions
from schemas.ids import WorkerId
from schemas.judge_config import JudgeConfig, OpenAIConfig, Price, QuestionConfig
from schemas.messages import Role
from tests.support.judging.endpoint_replies import Said, verdict
from tests.support.judging.endpoint_requests import SCREENSHOT_TOKENS, TOKEN_CHARACTERS, Asked
from tests.support.judging.scripted_endpoint import scripted_endpoint
from tests.support.judging.scripted_judging import RUBRIC, SUBJECTS

_STEPS: Final = (8, 12, 16, 20)
_LIGHT, _STRONG = "light", "strong"
_PRICES: Final = {
    _LIGHT: Price(input=0.1, cached_input=0.025, output=0.4),
    _STRONG: Price(input=0.5, cached_input=0.125, output=3.0),
}
"""Round figures, nobody's: a model for key points and blocking, and a dearer one for the evaluation."""
STAGED, WEBGYM, QUESTION_FIRST = "staged", "WebGym's order", "question first"
_WAYS: Final = (WEBGYM, QUESTION_FIRST, STAGED)


@dataclass(frozen=True)
class Row:
    """Means of a trajectory."""

    kind: str
    way: str
    calls: float
    screenshots_sent: float
    prompt_tokens: float
    cached_share: float
    fresh_tokens: float
    completion_tokens: float
    cost_of_1000: float
    """At the example's prices."""


async def measure() -> list[Row]:
    of_kind = {
        kind: [ended(kind, 10 * place + at, num_steps, noise(1)) for at, num_steps in enumerate(_STEPS)]
        for place, kind in enumerate(Kind)
    }
    rows = [row for way in _WAYS for row in await _judged(way, of_kind)]
    return sorted(rows, key=lambda row: [*Kind].index(Kind(row.kind)))


def report(rows: Sequence[Row]) -> Report:
    return Report(
        name="judging_calls",
        title="What a judgement asks of models",
        rows=rows,
        notes=(
            f"means over trajectories of {', '.join(map(str, _STEPS))} distinct screenshots; every second one is evidence",
            f"tokens are counted by rule: {SCREENSHOT_TOKENS} a screenshot, {TOKEN_CHARACTERS} characters of text each; "
            "cached is the longest beginning that any earlier request had",
            "WebGym's order: the same questions, key points first, then blocking, and no look for an answer; "
            "question first: what is asked stands before the screenshots",
            f"cost is an example, not anybody's price list: {_sheet()}, a million tokens",
        ),
    )


def _sheet() -> str:
    return "; ".join(
        f"{model} {price.input:g} in, {price.cached_input:g} cached, {price.output:g} out" for model, price in _PRICES.items()
    )


async def _judged(way: str, of_kind: Mapping[Kind, Sequence[Ended]]) -> list[Row]:
    rows = []
    async with scripted_endpoint(_say) as endpoint:
        config = OpenAIConfig(
            base_url=endpoint.base_url,
            model=_STRONG,
            keypoint_detection=QuestionConfig(model=_LIGHT),
            blocking_detection=QuestionConfig(model=_LIGHT),
            prices=_PRICES,
        )
        async with open_endpoints(config, {}) as endpoints:
            asked = {group: QuestionFirst(one) if way == QUESTION_FIRST else one for group, one in endpoints.items()}
            for kind, episodes in of_kind.items():
                before = len(endpoint.requests)
                with _asking(way):
                    rulings = [await _ruling(asked, config, episode) for episode in episodes]
                assert {ruling.verdict for ruling in rulings} == {VERDICTS[kind]}, rulings
                num_screenshots = sum(request.num_screenshots for request in endpoint.requests[before:])
                rows.append(_row(kind, way, rulings, num_screenshots))
    return rows


@contextmanager
def _asking(way: str) -> Iterator[None]:
    with webgym_order() if way == WEBGYM else nullcontext():
        yield


async def _ruling(endpoints: Mapping[str, Endpoint], config: OpenAIConfig, episode: Ended) -> Ruling:
    bus, status, judge_config = MemoryBus(SUBJECTS), Status(Role.JUDGE, WorkerId("judge-1")), JudgeConfig(judge=RUBRIC)
    async with open_budget(bus, SUBJECTS, judge_config, status) as budget:
        sessions = RecordedSessions(
            endpoints=endpoints,
            journal=Journal(bus, SUBJECTS, rubric=RUBRIC, worker=WorkerId("judge-1")),
            budget=budget,
            config=config,
            status=status,
        )
        judge = RubricJudge(sessions, committed_prompts(RUBRIC), judge_config)
        return await judge.judge(await episode.before_a_judge())


def _say(asked: Asked) -> Said:
    return verdict(reasoning=REASONING, verdict=verdict_word(schema_name_of(asked.body), asked.text))


def _row(kind: Kind, way: str, rulings: Sequence[Ruling], num_screenshots: int) -> Row:
    used = [usage for ruling in rulings for usage in ruling.usage]
    prompt_tokens, cached_tokens = sum(usage.prompt_tokens for usage in used), sum(usage.cached_tokens for usage in used)
    number = len(rulings)
    return Row(
        kind=kind.value,
        way=way,
        calls=sum(usage.num_calls for usage in used) / number,
        screenshots_sent=num_screenshots / number,
        prompt_tokens=prompt_tokens / number,
        cached_share=cached_tokens / prompt_tokens,
        fresh_tokens=(prompt_tokens - cached_tokens) / number,
        completion_tokens=sum(usage.completion_tokens for usage in used) / number,
        cost_of_1000=1000 * sum(usage.cost for usage in used) / number,
    )
