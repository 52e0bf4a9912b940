"""The scripted endpoint itself, with the real client: what the judges' tests count on."""

import base64
import json
import random
from typing import Any

import anyio
import openai
import pytest

from tests.deadlines import HANGS_S
from tests.support.judging.endpoint_replies import (
    HANG,
    RESET,
    Reply,
    broken_body,
    failed,
    failing,
    filtered,
    html_page,
    in_turn,
    no_choices,
    rate_limited,
    says,
    server_error,
    truncated,
    verdict,
)
from tests.support.judging.endpoint_requests import SCREENSHOT_TOKENS, Asked
from tests.support.judging.scripted_endpoint import ScriptedEndpoint, scripted_endpoint
from tests.support.polling import until

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

SCREENSHOT = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(b"png").decode()}}


def _client(endpoint: ScriptedEndpoint, timeout_s: float | openai.Timeout = HANGS_S) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="sesame", base_url=endpoint.base_url, max_retries=0, timeout=timeout_s)


async def _ask(client: openai.AsyncOpenAI, *content: str | dict[str, Any], **more: Any) -> Any:
    parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    return await client.chat.completions.create(model="m", messages=[{"role": "user", "content": parts}], **more)  # type: ignore[list-item, misc]


async def test_a_script_sees_the_request_and_its_reply_is_read() -> None:
    seen: list[Asked] = []

    def script(asked: Asked) -> Reply:
        seen.append(asked)
        return verdict(passed=True)

    async with scripted_endpoint(script) as endpoint, _client(endpoint) as client:
        answer = await _ask(client, "look: ", SCREENSHOT, response_format={"type": "json_object"})
    assert answer.choices[0].message.content == '{"passed": true}'
    (asked,), (request,) = seen, endpoint.requests
    assert (asked.model, asked.key, asked.text, asked.screenshots) == ("m", "sesame", "look: ", (b"png",))
    assert (request.path, request.form, request.num_screenshots) == ("/v1/chat/completions", "json_object", 1)
    assert (request.outcome, request.usage.completion_tokens) == ("answered", 4)


async def test_beginnings_that_come_again_are_cached() -> None:
    async with scripted_endpoint(lambda _: says("x")) as endpoint, _client(endpoint) as client:
        first = await _ask(client, "s" * 640, SCREENSHOT, "one")
        other = await _ask(client, "s" * 640, SCREENSHOT, "two")
        unlike = await _ask(client, "t" * 640, SCREENSHOT, "one")
    usages = [answer.usage for answer in (first, other, unlike)]
    assert [usage.prompt_tokens for usage in usages] == [1 + 160 + SCREENSHOT_TOKENS + 1] * 3
    assert [usage.prompt_tokens_details.cached_tokens for usage in usages] == [0, 161 + SCREENSHOT_TOKENS, 1]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (rate_limited("3"), openai.RateLimitError),
        (server_error(), openai.InternalServerError),
        (html_page(), openai.InternalServerError),
        (failed(401), openai.AuthenticationError),
        (HANG, openai.APITimeoutError),
        (RESET, openai.APIConnectionError),
    ],
)
async def test_failures_are_what_the_client_takes_them_for(reply: Reply, error: type[Exception]) -> None:
    limits = openai.Timeout(HANGS_S, read=1.0) if reply == HANG else HANGS_S

    async def has_arrived() -> bool:
        return len(endpoint.requests) == 1

    async with scripted_endpoint(lambda _: reply) as endpoint, _client(endpoint, limits) as client:
        with pytest.raises(error):
            await _ask(client, "x")
        await until(has_arrived)


async def test_unhappy_answers_arrive() -> None:
    replies = in_turn(truncated("{"), filtered(), no_choices(), broken_body())
    async with scripted_endpoint(replies) as endpoint, _client(endpoint) as client:
        answers = [await _ask(client, "x") for _ in range(3)]
        assert [answer.choices[0].finish_reason for answer in answers[:2]] == ["length", "content_filter"]
        assert answers[2].choices == []
        with pytest.raises(json.JSONDecodeError):
            await _ask(client, "x")


async def test_failures_are_seeded_and_counted() -> None:
    async def outcomes(seed: int) -> list[str]:
        script = failing(lambda _: says("x"), 0.3, random.Random(seed))
        async with scripted_endpoint(script) as endpoint, _client(endpoint) as client:
            for _ in range(60):
                try:
                    await _ask(client, "x")
                except openai.APIStatusError:
                    continue
        return endpoint.outcomes

    first = await outcomes(1)
    assert first == await outcomes(1) != await outcomes(2)
    assert 8 < sum(outcome != "answered" for outcome in first) < 30
    assert set(first) == {"answered", "429", "500"}


async def test_a_script_may_wait_and_arrivals_are_awaited() -> None:
    go_on = anyio.Event()

    async def script(asked: Asked) -> Reply:
        await go_on.wait()
        return says(str(asked.index))

    async with scripted_endpoint(script) as endpoint, _client(endpoint) as client:
        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                for _ in range(8):
                    group.start_soon(_ask, client, "x")
                await endpoint.arrived(8)
                assert (endpoint.num_under_way, endpoint.outcomes) == (8, ["under way"] * 8)
                go_on.set()
    assert (endpoint.num_under_way, endpoint.most_under_way) == (0, 8)


async def test_a_broken_script_fails_the_test() -> None:
    def script(asked: Asked) -> Reply:
        raise KeyError(asked.model)

    with pytest.RaisesGroup(KeyError):
        async with scripted_endpoint(script) as endpoint, _client(endpoint) as client:
            with pytest.raises(openai.InternalServerError):
                await _ask(client, "x")
