"""Every answer of a judge's endpoint at every stage: the judgement, or the error, that becomes of it.

Through the real client, a real nats-server, and the judge as it is composed for a run.
"""

import json
import re
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

import pytest

from bus.background import background
from judges.episode import JudgedEpisode
from judges.judge import Judge, Ruling
from ops.roles.judge import open_judge
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.judge_config import JudgeConfig, OpenAIConfig, QuestionConfig
from schemas.messages import Judgement, Verdict
from tests.deadlines import HANGS_S
from tests.support.judging.asked_judge import answered, calls, judgements, question, role_run_of, run_for, worker_of
from tests.support.judging.endpoint_replies import Reply, says
from tests.support.judging.endpoint_requests import Asked
from tests.support.judging.judge_answers import (
    CASES,
    ENDPOINT,
    MAX_ANSWERS,
    MODELS,
    PAGE,
    PATIENCE_S,
    UNHAPPY,
    WORDS,
    Asking,
    Case,
    cells,
    markdown,
)
from tests.support.judging.scripted_endpoint import scripted_endpoint

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
_KINDS = {MODELS[asking]: asking for asking in (Asking.BLOCKING, Asking.KEYPOINT)}
_EVALUATION = (Asking.CRITERION_B, Asking.CRITERION_A, Asking.REFERENCE)
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/v1")
_BROKEN = re.compile(r"no connection \(\w+\)")
"""Whether writing or reading fails first is up to the system."""
_NAME = re.compile(r"\((\d+)-(\w+)\)")
_TIMEOUT_S = 15.0
"""Where an answer never comes; every other one has to come within it too."""


@dataclass
class Script:
    """Answers the question that an episode's name says as its case does, and every other one as is hoped for."""

    counts: Counter[str] = field(default_factory=Counter)
    """Requests about the question that an episode is about."""
    evaluated: dict[str, list[str]] = field(default_factory=dict)
    """Questions of each episode's evaluation in the order in which they came."""

    def __call__(self, asked: Asked) -> Reply:
        match = _NAME.search(asked.text)
        assert match is not None, "a question that is about no episode"
        case, about, asking = CASES[int(match[1])], Asking(match[2]), self._asking(match[0], asked)
        if asking is not about:
            return says(json.dumps({"reasoning": "it is so", "verdict": WORDS[asking].good}))
        self.counts[match[0]] += 1
        replies = case.replies(WORDS[asking])
        return replies[min(self.counts[match[0]], len(replies)) - 1]

    def _asking(self, episode: str, asked: Asked) -> Asking:
        if asked.model in _KINDS:
            return _KINDS[asked.model]
        known = self.evaluated.setdefault(episode, [])
        messages = json.dumps(asked.body["messages"])
        if messages not in known:
            known.append(messages)
        return _EVALUATION[known.index(messages)]


class ByCase:
    """Asks each case's own judge, so that an endpoint which stalls delays no other case."""

    name = "rubric_v1"

    def __init__(self, judges: dict[str, Judge]) -> None:
        self._judges = judges

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        return await self._judges[_judge_of(episode.trajectory.task.task)].judge(episode)


def _name(case: Case, asking: Asking) -> str:
    return f"{CASES.index(case)}-{asking.value}"


def _judge_of(name: str) -> str:
    """A judge of its own for an episode whose case stalls; one for all others."""
    return name if _case_of(name).stalls else "common"


def _case_of(name: str) -> Case:
    return CASES[int(name.partition("-")[0])]


def _config(base_url: str, judge: str = "common") -> Config:
    case = None if judge == "common" else _case_of(judge)
    return Config(
        judge_config=JudgeConfig(judge="rubric_v1"),
        env_config=EnvConfig(evaluation_workers=48),
        openai_config=OpenAIConfig(
            model=MODELS[Asking.REFERENCE],
            base_url=base_url,
            blocking_detection=QuestionConfig(model=MODELS[Asking.BLOCKING]),
            keypoint_detection=QuestionConfig(model=MODELS[Asking.KEYPOINT]),
            timeout_s=_TIMEOUT_S if case and case.hangs else HANGS_S,
            # Where a good answer follows, it counts however late a busy machine lets it come.
            patience_s=PATIENCE_S if case and case.endless else HANGS_S,
            max_answers=MAX_ANSWERS,
            max_concurrent=64,
        ),
    )


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """For fixtures of a module."""
    return "asyncio"


@pytest.fixture(scope="module")
async def observed(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Judgement, int]]:
    """The judgement of every cell, and the requests that its question took."""
    script, folder = Script(), tmp_path_factory.mktemp("answers")
    names = [_name(case, asking) for case, asking, _ in cells()]
    async with AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(scripted_endpoint(script))
        bus = await stack.enter_async_context(run_for(folder, "rubric_v1"))
        judges = {
            judge: await stack.enter_async_context(open_judge(role_run_of(bus, _config(endpoint.base_url, judge), folder)))
            for judge in dict.fromkeys(map(_judge_of, names))
        }
        post = role_run_of(bus, _config(endpoint.base_url), folder)
        hanging = [name for name in names if _case_of(name).hangs]
        async with background(worker_of(post, ByCase(judges)).run):
            # Those with a time limit come last: all others together keep this process busy for long.
            for part in ([name for name in names if name not in hanging], hanging):
                for name in part:
                    await answered(bus, question(name))
                found = await judgements(bus, len(names) if part is hanging else len(part))
        recorded = await calls(bus)
    for name in names:
        own = [call for call in recorded if call.episode == found[name].episode]
        assert sum(usage.num_calls for usage in found[name].usage) == len(own), name
    return {name: (judgement, script.counts[f"({name})"]) for name, judgement in found.items()}


def test_every_answer_becomes_what_the_table_says(observed: dict[str, tuple[Judgement, int]]) -> None:
    wrong = []
    for case, asking, expected in cells():
        judgement, num_requests = observed[_name(case, asking)]
        stage = judgement.stages[-1].stage if judgement.stages else ""
        error = (
            _BROKEN.sub("no connection", _ADDRESS.sub(ENDPOINT, judgement.error)) if judgement.verdict is Verdict.ERROR else ""
        )
        seen = replace(expected, verdict=judgement.verdict, reward=judgement.reward, stage=stage, error=error)
        if expected.num_requests:
            seen = replace(seen, num_requests=num_requests)
        if seen != expected:
            wrong.append(f"{case.name}, {asking}: {seen} instead of {expected}")
        assert num_requests > 0, case.name
    assert not wrong, "\n".join(wrong)


def test_no_unhappy_answer_is_worth_anything(observed: dict[str, tuple[Judgement, int]]) -> None:
    unhappy = [observed[_name(case, asking)][0] for case, asking, _ in cells() if case.name in UNHAPPY]
    assert len(unhappy) > 100
    assert {(judgement.verdict, judgement.reward) for judgement in unhappy} == {(Verdict.ERROR, None)}


def test_the_page_says_what_was_seen() -> None:
    assert PAGE.read_text() == markdown(), "python -m tests.support.judging.judge_answers"
