"""The judges' endpoint against a real vLLM server on CPU: screenshots, JSON schemas, refusals and usage as they really
travel."""

import json
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest

from judges.endpoint.opening import open_endpoints
from judges.endpoint.port import Answer, Question
from judges.rubric.prompts import committed_prompts
from schemas.config import Config
from schemas.errors import ConfigurationError, NoVerdict
from schemas.judge_config import JudgeConfig, OpenAIConfig, Price
from schemas.messages import Verdict
from tests.deadlines import HANGS_S
from tests.support.agents import tiny_models
from tests.support.agents.vllm_server import KEY, MAX_SCREENSHOTS, MODEL, VllmServer, vllm_server
from tests.support.judging.asked_judge import answered, calls, judgements, judging, question, run_for

pytestmark = [pytest.mark.integration, pytest.mark.anyio, pytest.mark.timeout(1800)]

SYSTEM = "You judge whether a screenshot proves a fact. Answer with one JSON object."
QUESTION = "Fact: the box is blue. Is it proven?"
# An untrained model would go on for ever in a text without bounds.
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string", "pattern": "^[a-z ]{0,60}$"},
        "verdict": {"type": "string", "enum": ["SUCCESS", "FAILURE"]},
    },
    "required": ["reasoning", "verdict"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    with vllm_server(
        tmp_path_factory.mktemp("vllm"), [SYSTEM, QUESTION, *committed_prompts("rubric_v1").texts.values()]
    ) as server:
        yield server


def _question(*screenshots: int, text: str = QUESTION) -> Question:
    shown = (part for seed in screenshots for part in (f"Screenshot {seed}:", tiny_models.screenshot(seed)))
    return Question(system=SYSTEM, content=(*shown, text), schema_name="verdict", schema=SCHEMA)


def _opened(server: VllmServer, *, key: str = KEY, **settings: Any) -> AbstractAsyncContextManager[Any]:
    known: dict[str, Any] = {
        "base_url": server.base_url,
        "openai_api_key_env_var": "TEST_KEY",
        "model": MODEL,
        "timeout_s": HANGS_S,
        "patience_s": HANGS_S,
    }
    return open_endpoints(OpenAIConfig(**known | settings), {"TEST_KEY": key})


async def _ask(server: VllmServer, question: Question, max_tokens: int = 1024, **settings: Any) -> Answer:
    async with _opened(server, **settings) as endpoints:
        with anyio.fail_after(HANGS_S):
            answer: Answer = await endpoints["evaluation"].ask(question, max_completion_tokens=max_tokens)
            return answer


async def test_answers_keep_to_the_schema_and_screenshots_are_seen(server: VllmServer) -> None:
    answers: dict[int, Answer] = {}
    async with _opened(server, structured_output="json_schema", temperature=1.0) as endpoints:

        async def ask(num_screenshots: int) -> None:
            question = _question(*range(num_screenshots))
            answers[num_screenshots] = await endpoints["evaluation"].ask(question, max_completion_tokens=2048)

        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                for num_screenshots in range(MAX_SCREENSHOTS + 1):
                    group.start_soon(ask, num_screenshots)
    for answer in answers.values():
        assert answer.finish_reason == "stop"
        jsonschema.validate(json.loads(answer.text), SCHEMA)
        assert (answer.num_failures, answer.seconds > 0, answer.completion_tokens > 0) == (0, True, True)
    # A page of 160 x 210 is 12 image tokens, with one before and one behind.
    prompts = [answers[num_screenshots].prompt_tokens for num_screenshots in range(MAX_SCREENSHOTS + 1)]
    assert min(later - earlier for earlier, later in pairwise(prompts)) > 14


async def test_it_is_the_schema_that_makes_the_verdict(server: VllmServer) -> None:
    answer = await _ask(server, _question(1), max_tokens=64, structured_output="text")
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(answer.text)


async def test_any_json_without_a_schema(server: VllmServer) -> None:
    answer = await _ask(server, _question(1), max_tokens=64, structured_output="json_object")
    assert answer.text.startswith("{")


async def test_one_question_twice_is_one_answer(server: VllmServer) -> None:
    assert (await _ask(server, _question(3))).text == (await _ask(server, _question(3))).text


async def test_a_cut_off_answer_says_so(server: VllmServer) -> None:
    answer = await _ask(server, _question(1), max_tokens=3)
    assert (answer.finish_reason, answer.completion_tokens) == ("length", 3)


@pytest.mark.parametrize(
    "question",
    [_question(*range(MAX_SCREENSHOTS + 1)), _question(text="9" * 20_000)],
    ids=["too many screenshots", "too long"],
)
async def test_what_it_does_not_take_is_refused(server: VllmServer, question: Question) -> None:
    with pytest.raises(NoVerdict, match="refuses the question: 400"):
        await _ask(server, question)


@pytest.mark.parametrize(
    ("settings", "said"), [({"key": "guess"}, r"401.*the key in TEST_KEY"), ({"model": "other"}, r"404.*openai_config.model")]
)
async def test_a_wrong_key_or_model_is_the_users_to_mend(server: VllmServer, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        await _ask(server, _question(), **settings)


async def test_the_rubric_judge_judges_with_it(server: VllmServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole trajectories, by the worker: what an untrained model finds is nonsense, but a verdict, paid for and recorded."""
    monkeypatch.setenv("TEST_KEY", KEY)
    config = Config(
        judge_config=JudgeConfig(
            judge="rubric_v1", max_evidence_screenshots=MAX_SCREENSHOTS, max_blocking_screenshots=MAX_SCREENSHOTS
        ),
        openai_config=OpenAIConfig(
            base_url=server.base_url,
            openai_api_key_env_var="TEST_KEY",
            model=MODEL,
            temperature=1.0,
            max_completion_tokens=1024,
            timeout_s=HANGS_S,
            patience_s=HANGS_S,
            max_answers=16,  # of an untrained model, one in a few is cut off
            prices={MODEL: Price(input=1.0, output=2.0)},
        ),
    )
    names = [f"t{number}" for number in range(4)]
    async with run_for(tmp_path, "rubric_v1") as bus, judging(bus, config, tmp_path):
        for seed, name in enumerate(names):
            await answered(
                bus, question(name), screenshots=[tiny_models.screenshot(2 * seed), tiny_models.screenshot(2 * seed + 1)]
            )
        found = await judgements(bus, len(names))
        recorded = await calls(bus)
    for name in names:
        judgement, own = found[name], [call for call in recorded if call.episode == found[name].episode]
        assert (judgement.verdict, judgement.reward) in (
            (Verdict.SUCCESS, 1.0), (Verdict.FAILURE, 0.0), (Verdict.EXCLUDED, None),
        ), judgement.error  # fmt: skip
        assert judgement.stages[-1].passed is (judgement.verdict is Verdict.SUCCESS)
        assert sum(usage.num_calls for usage in judgement.usage) == len(own) > 0
        assert all(usage.prompt_tokens > 0 and usage.completion_tokens > 0 and usage.cost > 0 for usage in judgement.usage)
        assert own[0].stage == "blocking"
        assert {call.model for call in own} == {MODEL}
        for call in own:
            if call.accepted:
                assert set(json.loads(call.text)) == {"reasoning", "verdict"}
