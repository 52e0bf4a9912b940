"""The OpenAI-compatible engine against a scripted endpoint on loopback, with the real client."""

import base64
import json
from dataclasses import replace

import pytest

from agents.engine import ChatMessage, GenerationRequest
from agents.openai_engine import OpenAIEngine
from schemas.errors import ConfigurationError, Disposition, PolicyError, PromptRefused, PromptTooLong
from schemas.messages import Screenshot, TokenUsage
from schemas.policy_config import PolicyConfig
from tests import builders
from tests.deadlines import HANGS_S
from tests.support.judging.endpoint_replies import (
    HANG,
    Reply,
    Sent,
    broken_body,
    failed,
    html_page,
    in_turn,
    no_choices,
    refused_by_filter,
    says,
)
from tests.support.judging.endpoint_requests import Asked
from tests.support.judging.scripted_endpoint import ScriptedEndpoint, scripted_endpoint

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

SCREENSHOT = Screenshot(data=b"\xff\xd8jpeg", media_type="image/jpeg", width=4, height=4)
REQUEST = GenerationRequest(
    messages=(ChatMessage("system", ("Be brief.",)), ChatMessage("user", ("Task: x\n", SCREENSHOT))),
    observation=builders.observation(builders.task()),
)
ANSWER = {
    "id": "1", "object": "chat.completion", "created": 0, "model": "m",
    "choices": [{
        "index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Action: x"},
        "logprobs": {"content": [{"token": "A", "logprob": -0.25, "bytes": None, "top_logprobs": []}], "refusal": None},
    }],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "sesame")


def _answers(body: dict[str, object]) -> Sent:
    return Sent(200, json.dumps(body).encode())


def _engine(endpoint: ScriptedEndpoint, timeout_s: float = HANGS_S) -> OpenAIEngine:
    policy = PolicyConfig(
        engine="openai", base_model="m", base_url=endpoint.base_url, api_key_env_var="TEST_KEY", vllm_timeout=timeout_s
    )
    return OpenAIEngine(policy)


async def test_messages_and_answer() -> None:
    seen: list[Asked] = []

    def script(asked: Asked) -> Reply:
        seen.append(asked)
        return _answers(ANSWER)

    async with scripted_endpoint(script) as endpoint, _engine(endpoint) as engine:
        generation = await engine.generate(REQUEST)
    (asked,) = seen
    sent = asked.body
    assert asked.key == "sesame"
    assert (sent["model"], sent["temperature"], sent["top_p"], sent["logprobs"]) == ("m", 1.0, 0.99, True)
    url = "data:image/jpeg;base64," + base64.b64encode(SCREENSHOT.data).decode()
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Task: x\n"}, {"type": "image_url", "image_url": {"url": url}}],
        },
    ]
    assert (generation.text, generation.finish_reason, generation.logprobs) == ("Action: x", "stop", (-0.25,))
    assert generation.completion_tokens == ()
    assert generation.usage is None


@pytest.mark.parametrize(
    ("counted", "usage"),
    [
        ({"prompt_tokens": 700, "completion_tokens": 9, "total_tokens": 709}, TokenUsage(prompt=700, completion=9)),
        (
            {"prompt_tokens": 700, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 512}},
            TokenUsage(prompt=700, completion=9, cached=512),
        ),
        (
            {"prompt_tokens": "many", "completion_tokens": -3, "prompt_tokens_details": "none"},
            TokenUsage(prompt=0, completion=0),
        ),
    ],
)
async def test_hidden_tokens_are_counted_by_the_endpoint(counted: dict[str, object], usage: TokenUsage) -> None:
    async with scripted_endpoint(lambda _: _answers(ANSWER | {"usage": counted})) as endpoint, _engine(endpoint) as engine:
        assert (await engine.generate(REQUEST)).usage == usage


@pytest.mark.parametrize("status", [400, 422])
async def test_an_endpoint_without_logprobs_is_asked_once(status: int) -> None:
    asked_for: list[bool] = []

    def script(asked: Asked) -> Reply:
        asked_for.append("logprobs" in asked.body)
        return failed(status, message="logprobs unsupported") if asked_for[-1] else says("Action: x")

    async with scripted_endpoint(script) as endpoint, _engine(endpoint) as engine:
        assert (await engine.generate(REQUEST)).logprobs == ()
        await engine.generate(REQUEST)
    assert asked_for == [True, False, False]


@pytest.mark.parametrize("refusal", [{"code": "context_length_exceeded"}, {"code": 400, "param": "input_tokens"}])
async def test_what_is_too_long_for_the_endpoint_is_asked_again_with_fewer_rounds(refusal: dict[str, object]) -> None:
    asked_for: list[int] = []
    refused = Sent(400, json.dumps({"error": {"message": "too long", **refusal}}).encode())

    def script(asked: Asked) -> Reply:
        asked_for.append(len(asked.body["messages"]))
        return says("Action: x") if asked_for[-1] < 3 else refused

    def shortened(num_dropped: int) -> tuple[ChatMessage, ...] | None:
        return (*REQUEST.messages, *REQUEST.messages)[num_dropped:] if num_dropped <= most else None

    asking = replace(REQUEST, messages=(*REQUEST.messages, *REQUEST.messages), shortened=shortened)
    async with scripted_endpoint(script) as endpoint, _engine(endpoint) as engine:
        most = 4
        assert (await engine.generate(asking)).num_dropped == 2
        most = 1
        with pytest.raises(PromptTooLong, match=r"cannot read step 0 of .* without any earlier round"):
            await engine.generate(asking)
    assert asked_for == [4, 3, 2, 4, 3]


async def test_a_filtered_prompt_says_nothing_of_logprobs() -> None:
    replies: list[Reply] = [refused_by_filter(), _answers(ANSWER)]
    async with scripted_endpoint(in_turn(*replies)) as endpoint, _engine(endpoint) as engine:
        with pytest.raises(PromptRefused):
            await engine.generate(REQUEST)
        assert (await engine.generate(REQUEST)).logprobs == (-0.25,)


REFUSED = {
    "filtered": refused_by_filter(),
    "against the policy": failed(403, code="content_policy_violation"),
    "bad": failed(400),
    "too large": failed(413),
    "not understood": failed(422),
}


@pytest.mark.parametrize("reply", REFUSED.values(), ids=REFUSED)
async def test_a_prompt_that_the_endpoint_does_not_take_is_refused_for_good(reply: Reply) -> None:
    async with scripted_endpoint(lambda _: reply) as endpoint, _engine(endpoint) as engine:
        with pytest.raises(PromptRefused, match=r"\(model 'm'\) refuses step 0 of train-r0000-t1-m0: ") as refused:
            await engine.generate(REQUEST)
    assert refused.value.disposition is Disposition.REJECT


async def test_what_is_forbidden_to_a_key_that_was_answered_is_the_prompt() -> None:
    replies: list[Reply] = [failed(403), _answers(ANSWER), failed(403, message="flagged"), _answers(ANSWER)]
    async with scripted_endpoint(in_turn(*replies)) as endpoint, _engine(endpoint) as engine:
        with pytest.raises(ConfigurationError, match="TEST_KEY"):
            await engine.generate(REQUEST)
        await engine.generate(REQUEST)
        with pytest.raises(PromptRefused, match="flagged"):
            await engine.generate(REQUEST)
        await engine.generate(REQUEST)


@pytest.mark.parametrize("status", [402, 408, 409, 429, 500, 503])
async def test_failures_are_tried_again(status: int) -> None:
    async with scripted_endpoint(lambda _: failed(status)) as endpoint, _engine(endpoint) as engine:
        with pytest.raises(PolicyError, match="gave no answer") as met:
            await engine.generate(REQUEST)
    assert met.value.disposition is Disposition.RETRY


NO_COMPLETION = {
    "a page": html_page(200),
    "broken off": broken_body(),
    "no object": Sent(200, b"null"),
    "no choice": no_choices(),
    "no message": _answers(ANSWER | {"choices": [{"index": 0, "message": None}]}),
    "no text": _answers(ANSWER | {"choices": [{"index": 0, "message": {"content": [1]}}]}),
}


@pytest.mark.parametrize("reply", NO_COMPLETION.values(), ids=NO_COMPLETION)
async def test_a_reply_that_is_no_completion_is_tried_again(reply: Reply) -> None:
    async with scripted_endpoint(in_turn(reply, _answers(ANSWER))) as endpoint, _engine(endpoint) as engine:
        with pytest.raises(PolicyError, match=r"no completion \(.*\); check policy_config\.base_url") as met:
            await engine.generate(REQUEST)
        assert (await engine.generate(REQUEST)).text == "Action: x"
    assert met.value.disposition is Disposition.RETRY


async def test_a_silent_endpoint_times_out() -> None:
    async with scripted_endpoint(lambda _: HANG) as endpoint, _engine(endpoint, timeout_s=0.2) as engine:
        with pytest.raises(PolicyError):
            await engine.generate(REQUEST)


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_wrong_key_or_model_is_the_users_to_mend(status: int) -> None:
    async with scripted_endpoint(lambda _: failed(status)) as endpoint, _engine(endpoint) as engine:
        with pytest.raises(ConfigurationError, match="TEST_KEY"):
            await engine.generate(REQUEST)


UNKNOWN_TO_GOOGLE = Sent(
    400,
    json.dumps(
        [
            {"error": {"code": 400, "message": "API key not valid.", "details": [{"reason": "API_KEY_INVALID"}]}},
        ]
    ).encode(),
)


@pytest.mark.parametrize("reply", [failed(401), failed(404), UNKNOWN_TO_GOOGLE], ids=["401", "404", "key unknown"])
async def test_a_key_or_model_that_was_answered_is_tried_again_until_somebody_mends_it(reply: Sent) -> None:
    replies: list[Reply] = [_answers(ANSWER), reply, _answers(ANSWER)]
    async with scripted_endpoint(in_turn(*replies)) as endpoint, _engine(endpoint) as engine:
        await engine.generate(REQUEST)
        with pytest.raises(PolicyError, match=r"check policy_config\.base_url, .* TEST_KEY") as met:
            await engine.generate(REQUEST)
        assert (await engine.generate(REQUEST)).logprobs == (-0.25,)
    assert met.value.disposition is Disposition.RETRY


async def test_a_key_that_google_does_not_know_is_no_fault_of_the_prompt() -> None:
    async with scripted_endpoint(lambda _: UNKNOWN_TO_GOOGLE) as endpoint, _engine(endpoint) as engine:
        with pytest.raises(ConfigurationError, match="TEST_KEY"):
            await engine.generate(REQUEST)


async def test_no_endpoint_is_tried_again() -> None:
    policy = PolicyConfig(engine="openai", base_model="m", base_url="http://127.0.0.1:9/v1", api_key_env_var="TEST_KEY")
    async with OpenAIEngine(policy) as engine:
        with pytest.raises(PolicyError):
            await engine.generate(REQUEST)


def test_a_model_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "k")
    with pytest.raises(ConfigurationError, match="base_model is empty: write the name by which the endpoint knows"):
        OpenAIEngine(PolicyConfig(engine="openai", api_key_env_var="TEST_KEY"))


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="TEST_KEY is not set"):
        OpenAIEngine(PolicyConfig(engine="openai", api_key_env_var="TEST_KEY"))
