"""The judges' endpoint against a scripted one on loopback, with the real client: forms, retries, limits, patience, keys."""

import asyncio
import io
import logging
import random
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

import anyio
import openai
import pytest
import structlog
from structlog.testing import capture_logs

from judges.endpoint.openai_endpoint import OpenAIEndpoint
from judges.endpoint.opening import open_endpoints
from judges.endpoint.port import Answer, Endpoint, Question, Unanswered
from schemas.errors import ConfigurationError, NoVerdict
from schemas.judge_config import OpenAIConfig, QuestionConfig
from schemas.messages import Screenshot
from tests.deadlines import HANGS_S
from tests.support.judging.endpoint_replies import (
    HANG,
    RESET,
    Reply,
    Said,
    Sent,
    broken_body,
    failed,
    failing,
    filtered,
    html_page,
    in_turn,
    no_choices,
    no_content,
    out_of_quota,
    rate_limited,
    refused_by_filter,
    says,
    server_error,
    truncated,
)
from tests.support.judging.endpoint_requests import SCREENSHOT_TOKENS, Asked, Usage
from tests.support.judging.scripted_endpoint import Script, ScriptedEndpoint, scripted_endpoint

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

KEY = "sk-sesame-open"
ENVIRON = {"TEST_KEY": KEY}
SCHEMA = {"type": "object", "properties": {"seen": {"type": "boolean"}}, "required": ["seen"], "additionalProperties": False}


def _question(text: str = "Is it seen?") -> Question:
    screenshots = (Screenshot(b"one", "image/png", 1, 1), Screenshot(b"two", "image/jpeg", 1, 1))
    return Question(
        system="Judge.",
        content=("First: ", screenshots[0], " then: ", screenshots[1], text),
        schema_name="seen",
        schema=SCHEMA,
    )


@asynccontextmanager
async def _opened(script: Script, **settings: object) -> AsyncIterator[tuple[ScriptedEndpoint, OpenAIEndpoint]]:
    async with scripted_endpoint(script) as scripted, _endpoints(scripted, **settings) as endpoints:
        yield scripted, endpoints["evaluation"]


def _endpoints(scripted: ScriptedEndpoint, **settings: object) -> AbstractAsyncContextManager[Mapping[str, OpenAIEndpoint]]:
    config = OpenAIConfig(
        base_url=scripted.base_url,
        openai_api_key_env_var="TEST_KEY",
        model="m",
        **settings,  # type: ignore[arg-type]
    )
    return open_endpoints(config, ENVIRON)


async def _ask(endpoint: Endpoint, text: str = "Is it seen?") -> Answer:
    with anyio.fail_after(HANGS_S):
        return await endpoint.ask(_question(text), max_completion_tokens=77)


async def test_a_question_travels_whole_and_its_answer_comes_back() -> None:
    seen: list[Asked] = []

    def script(asked: Asked) -> Reply:
        seen.append(asked)
        return says('{"seen": true}')

    async with _opened(script) as (scripted, endpoint):
        began = anyio.current_time()
        first, again = await _ask(endpoint), await _ask(endpoint, "And this?")
        took_s = anyio.current_time() - began
        assert endpoint.model == "m"
    asked = seen[0]
    assert asked.path == "/v1/chat/completions"
    assert (asked.model, asked.key, asked.body["max_completion_tokens"], asked.body["temperature"]) == ("m", KEY, 77, 0.0)
    assert [(message.role, message.content) for message in asked.messages] == [
        ("system", ("Judge.",)),
        ("user", ("First: ", b"one", " then: ", b"two", "Is it seen?")),
    ]
    assert "data:image/jpeg;base64,dHdv" in str(asked.body["messages"])
    assert asked.body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "seen", "schema": SCHEMA, "strict": True},
    }
    assert first == Answer(
        text='{"seen": true}',
        finish_reason="stop",
        prompt_tokens=11 + 2 * SCREENSHOT_TOKENS,
        completion_tokens=4,
        seconds=first.seconds,
        temperature=0.0,
    )
    assert 0 < first.seconds + again.seconds <= took_s
    assert again.cached_tokens == 8 + 2 * SCREENSHOT_TOKENS
    assert scripted.outcomes == ["answered"] * 2


@pytest.mark.parametrize(
    ("reply", "text", "finish_reason"),
    [
        (truncated('{"seen": tr'), '{"seen": tr', "length"),
        (filtered(), "", "content_filter"),
        (Said("half a sent", finish_reason="content_filter"), "", "content_filter"),
        (refused_by_filter(), "", "content_filter"),
        (refused_by_filter("content_policy_violation"), "", "content_filter"),
        (no_choices(), "", ""),
        (no_content(), "", "stop"),
        (says("FAILURE"), "FAILURE", "stop"),
    ],
)
async def test_unhappy_answers_are_answers(reply: Reply, text: str, finish_reason: str) -> None:
    async with _opened(lambda _: reply) as (scripted, endpoint):
        answer = await _ask(endpoint)
    assert (answer.text, answer.finish_reason, answer.num_failures) == (text, finish_reason, 0)
    assert len(scripted.requests) == 1


def _takes(*forms: str) -> Script:
    return lambda asked: says("{}") if asked.form in forms else failed(400, param="response_format")


@pytest.mark.parametrize(
    ("taken", "forms"),
    [
        (("json_schema", "json_object", ""), ["json_schema", "json_schema"]),
        (("json_object", ""), ["json_schema", "json_object", "json_object"]),
        (("",), ["json_schema", "json_object", "", ""]),
    ],
)
async def test_the_strictest_form_is_found_once(taken: tuple[str, ...], forms: list[str]) -> None:
    async with _opened(_takes(*taken)) as (scripted, endpoint):
        first, second = await _ask(endpoint), await _ask(endpoint)
    assert [request.form for request in scripted.requests] == forms
    assert (first.num_failures, second.num_failures) == (len(forms) - 2, 0)


async def test_the_form_is_remembered_for_each_model() -> None:
    def script(asked: Asked) -> Reply:
        return failed(400) if asked.model == "old" and asked.form else says("{}")

    old = QuestionConfig(model="old")
    async with (
        scripted_endpoint(script) as scripted,
        _endpoints(scripted, keypoint_detection=old, blocking_detection=old) as endpoints,
    ):
        for group in ("keypoint_detection", "blocking_detection", "evaluation"):
            await _ask(endpoints[group])
    assert [(request.model, request.form) for request in scripted.requests] == [
        ("old", "json_schema"), ("old", "json_object"), ("old", ""), ("old", ""), ("m", "json_schema"),
    ]  # fmt: skip


async def test_a_refused_question_does_not_loosen_the_form() -> None:
    def script(asked: Asked) -> Reply:
        return failed(400, message="too long") if "long" in asked.text else says("{}")

    async with _opened(script) as (scripted, endpoint):
        await _ask(endpoint)
        with pytest.raises(NoVerdict, match=r"refuses the question: 400 \(too long\)"):
            await _ask(endpoint, "long")
        await _ask(endpoint)
    assert [request.form for request in scripted.requests] == ["json_schema"] * 3


async def test_what_no_form_cures_is_refused_once_for_each_later_question() -> None:
    def script(asked: Asked) -> Reply:
        return failed(400, message="At most 1 image(s)") if "Done?" in asked.text else says("{}")

    async with _opened(script) as (scripted, endpoint):
        await _ask(endpoint)
        for _ in range(3):
            with pytest.raises(NoVerdict, match=r"refuses the question: 400 \(At most 1 image\(s\)\)"):
                await endpoint.ask(replace(_question("Done?"), schema_name="verdict"), max_completion_tokens=9)
    assert [request.form for request in scripted.requests][1:] == [
        "json_schema", "json_object", "", "json_schema", "json_schema",
    ]  # fmt: skip


async def test_a_refusal_of_the_messages_is_not_met_with_another_form() -> None:
    async with _opened(lambda _: failed(400, param="messages.[1].content")) as (scripted, endpoint):
        with pytest.raises(NoVerdict, match="refuses the question"):
            await _ask(endpoint)
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("form", ["json_schema", "json_object", "text"])
async def test_a_fixed_form_is_the_only_one(form: str) -> None:
    async with _opened(lambda _: failed(400), structured_output=form) as (scripted, endpoint):
        with pytest.raises(NoVerdict):
            await _ask(endpoint)
    assert [request.form for request in scripted.requests] == [form.replace("text", "")]


async def test_a_temperature_that_is_refused_is_left_out_from_then_on() -> None:
    temperatures: list[object] = []

    def script(asked: Asked) -> Reply:
        temperatures.append(asked.body.get("temperature"))
        return failed(400, param="temperature") if "temperature" in asked.body else says("{}")

    async with _opened(script, temperature=0.5) as (scripted, endpoint):
        first, second = await _ask(endpoint), await _ask(endpoint)
        assert (first.num_failures, first.temperature, second.temperature) == (1, None, None)
    assert temperatures == [0.5, None, None]
    assert {request.form for request in scripted.requests} == {"json_schema"}


async def test_no_temperature_is_sent_when_there_is_none() -> None:
    def script(asked: Asked) -> Reply:
        assert "temperature" not in asked.body
        return says("{}")

    async with _opened(script, temperature=None) as (_, endpoint):
        await _ask(endpoint)


@pytest.mark.parametrize(
    "failure",
    [
        server_error(retry_after_ms=1), rate_limited("0.01"), failed(503, headers={"retry-after": "0"}), RESET,
        html_page(502), html_page(200), broken_body(), failed(408), failed(409),
    ],
    ids=["500", "429", "503", "reset", "html", "html as answer", "broken", "408", "409"],
)  # fmt: skip
async def test_what_may_yet_succeed_is_asked_again(failure: Reply) -> None:
    async with _opened(in_turn(failure, says("yes")), timeout_s=HANGS_S) as (scripted, endpoint):
        answer = await _ask(endpoint)
        assert endpoint.waiting == ""
    assert (answer.text, answer.num_failures, len(scripted.requests)) == ("yes", 1, 2)
    assert [request.form for request in scripted.requests] == ["json_schema"] * 2


async def test_a_request_that_is_not_answered_in_time_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, timeout_s = asyncio.get_running_loop(), HANGS_S / 2

    def script(asked: Asked) -> Reply:
        if asked.index:
            return says("yes")
        # Its time is over as soon as it has arrived, and the next one has as much.
        monkeypatch.setattr(loop, "time", lambda: time.monotonic() + timeout_s)
        return HANG

    async with _opened(script, timeout_s=timeout_s) as (scripted, endpoint):
        answer = await _ask(endpoint)
    assert (answer.text, answer.num_failures, scripted.outcomes) == ("yes", 1, ["hang", "answered"])


async def test_an_endpoint_that_does_not_listen_ends_the_patience() -> None:
    async with scripted_endpoint(lambda _: says("x")) as gone:
        pass
    async with _endpoints(gone, patience_s=0.3) as endpoints:
        with pytest.raises(NoVerdict, match=r"no answer within 0.3 s of its first failure: no connection \(ConnectError\)"):
            await _ask(endpoints["evaluation"])


@pytest.mark.parametrize(
    ("failure", "said"),
    [(server_error(), "500"), (rate_limited("3600"), "429 rate_limit_exceeded"), (out_of_quota(), "quota is used up")],
)
async def test_patience_ends_with_the_last_reason(failure: Reply, said: str) -> None:
    async with _opened(lambda _: failure, patience_s=0.2) as (scripted, endpoint):
        with pytest.raises(NoVerdict, match=said), anyio.fail_after(HANGS_S):
            await _ask(endpoint)
    assert len(scripted.requests) < 20


async def test_no_patience_is_no_second_try() -> None:
    async with _opened(lambda _: rate_limited("0"), patience_s=0.0) as (scripted, endpoint):
        with pytest.raises(NoVerdict):
            await _ask(endpoint)
    assert len(scripted.requests) == 1


async def test_a_question_does_not_wait_longer_at_a_closed_endpoint_than_at_a_failing_one() -> None:
    async with _opened(in_turn(rate_limited("3600"), says("never")), patience_s=0.2) as (scripted, endpoint):
        for _ in range(2):
            with pytest.raises(NoVerdict, match="429"):
                await _ask(endpoint)
            assert "429" in endpoint.waiting
    assert len(scripted.requests) == 1


async def test_nothing_that_an_endpoint_says_closes_it_for_good() -> None:
    async with _opened(lambda _: rate_limited("1e12"), patience_s=0.05) as (_, endpoint):
        with pytest.raises(NoVerdict, match="429"):
            await _ask(endpoint)
        assert re.search(r"closed for 3[56]\d\d s", endpoint.waiting)


async def test_a_reply_without_bounds_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judges.endpoint.bounded.MAX_REPLY_BYTES", 100_000)
    for status in (200, 404):
        huge = Sent(status, b" " * 100_001)
        async with _opened(lambda _, huge=huge: huge, patience_s=0.1) as (_, endpoint):  # type: ignore[misc]
            with pytest.raises(NoVerdict, match="ReplyTooLarge"):
                await _ask(endpoint)
    async with _opened(lambda _: says("x" * 90_000)) as (_, endpoint):
        assert len((await _ask(endpoint)).text) == 90_000


async def test_requests_without_an_answer_are_counted_in_the_end() -> None:
    async with _opened(in_turn(failed(400), failed(400), failed(400)), patience_s=5.0) as (scripted, endpoint):
        with pytest.raises(Unanswered, match="refuses the question: 400") as refused:
            await _ask(endpoint)
    assert refused.value.num_failures == len(scripted.requests) == 3
    async with _opened(lambda _: server_error(), patience_s=1.0) as (scripted, endpoint):
        with pytest.raises(Unanswered, match="gave no answer") as silent:
            await _ask(endpoint)
    assert silent.value.num_failures == len(scripted.requests) > 0


async def test_used_up_quota_is_said_clearly() -> None:
    with capture_logs() as logs:
        async with _opened(lambda _: out_of_quota(), patience_s=0.1) as (_, endpoint):
            with pytest.raises(NoVerdict):
                await _ask(endpoint)
    (warning,) = (entry for entry in logs if entry["log_level"] == "warning")
    assert warning["reason"] == "429 insufficient_quota: the account's quota is used up"
    assert warning["wait_s"] == 60


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_wrong_key_or_model_is_the_users_to_mend(status: int) -> None:
    async with _opened(lambda asked: failed(status, message=f"wrong: {asked.key}")) as (scripted, endpoint):
        with pytest.raises(ConfigurationError, match=rf"{status}.*the key in TEST_KEY, openai_config.base_url") as raised:
            await _ask(endpoint)
    assert KEY not in repr(raised.value)
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_key_or_model_that_was_answered_is_waited_for_until_somebody_mends_it(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr("judges.endpoint.openai_endpoint.PERSON_AWAITED_S", 0.001)
    with capture_logs() as logs:
        async with _opened(in_turn(says("yes"), failed(status), failed(status), says("again"))) as (_, endpoint):
            await _ask(endpoint)
            answer = await _ask(endpoint)
    assert (answer.text, answer.num_failures) == ("again", 2)
    first, second = (entry["reason"] for entry in logs if entry["log_level"] == "warning")
    assert re.fullmatch(rf"{status}.*: check the key in TEST_KEY, openai_config.base_url and openai_config.model", first)
    assert second == first


async def test_a_question_that_waits_for_a_person_holds_up_no_other() -> None:
    refused = anyio.Event()

    def script(asked: Asked) -> Reply:
        if "flagged" not in asked.text:
            return says("yes")
        refused.set()
        return failed(403)

    async with _opened(script) as (_, endpoint):
        await _ask(endpoint)
        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                group.start_soon(_ask, endpoint, "flagged")
                await refused.wait()
                assert (await _ask(endpoint)).text == "yes"
                while not endpoint.waiting:  # noqa: ASYNC110 - nothing announces it
                    await anyio.sleep(0.01)
                assert endpoint.waiting.startswith("403: check the key in TEST_KEY")
                group.cancel_scope.cancel()


async def test_who_waited_for_a_person_in_vain_says_for_what() -> None:
    async with _opened(in_turn(says("yes"), failed(401)), patience_s=0.0) as (_, endpoint):
        await _ask(endpoint)
        with pytest.raises(Unanswered, match="401: check the key in TEST_KEY"):
            await _ask(endpoint)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_screenshots_go_to_no_other_address_than_the_one_that_was_written(status: int) -> None:
    async with scripted_endpoint(lambda _: says("from elsewhere")) as elsewhere:
        moved = Sent(status, b"", {"location": f"{elsewhere.base_url}/chat/completions"})
        async with _opened(lambda _: moved) as (scripted, endpoint):
            with pytest.raises(ConfigurationError, match=rf"{status}: it sends callers to another address; check"):
                await _ask(endpoint)
    assert (len(scripted.requests), elsewhere.requests) == (1, [])


@pytest.mark.parametrize(
    ("base_url", "is_told"),
    [
        ("https://api.openai.com/v1", True),
        ("https://eu.api.openai.com/v1", True),
        ("https://notopenai.com/v1", False),
        ("https://openai.com.example.org/v1", False),
        ("http://127.0.0.1:8000/v1", False),
    ],
)
async def test_what_the_environment_says_of_openai_is_told_to_nobody_else(
    base_url: str, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(variable, "sesame")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Account: sesame\nAuthorization: Bearer sesame")
    clients: list[openai.AsyncOpenAI] = []
    monkeypatch.setattr("judges.endpoint.opening.OpenAIEndpoint", lambda **given: clients.append(given["client"]))
    async with open_endpoints(OpenAIConfig(base_url=base_url, openai_api_key_env_var="TEST_KEY", model="m"), ENVIRON):
        headers = clients[0].default_headers
    told = [name for name in ("X-Account", "OpenAI-Organization", "OpenAI-Project") if headers.get(name) == "sesame"]
    assert len(told) == (3 if is_told else 0)
    assert is_told or "sesame" not in str(headers)


class Turnstile:
    """A script whose requests wait until they are let go."""

    def __init__(self) -> None:
        self.go_on = anyio.Event()

    async def __call__(self, asked: Asked) -> Reply:
        await self.go_on.wait()
        return says("x")


async def test_no_more_than_so_many_calls_are_under_way_over_all_groups() -> None:
    turnstile = Turnstile()
    async with scripted_endpoint(turnstile) as scripted:
        settings = {"keypoint_detection": QuestionConfig(model="other"), "max_concurrent": 3}
        async with _endpoints(scripted, **settings) as endpoints, anyio.create_task_group() as group:
            for index in range(20):
                group.start_soon(_ask, endpoints[("keypoint_detection", "evaluation")[index % 2]])
            await scripted.arrived(3)
            assert scripted.num_under_way == 3
            turnstile.go_on.set()
    assert (scripted.most_under_way, len(scripted.requests)) == (3, 20)


async def test_turns_come_in_the_order_of_asking() -> None:
    seen: list[str] = []

    def script(asked: Asked) -> Reply:
        seen.append(asked.messages[1].content[-1])  # type: ignore[arg-type]
        return says("x")

    async with _opened(script, max_concurrent=1) as (_, endpoint), anyio.create_task_group() as group:
        for index in range(10):
            group.start_soon(_ask, endpoint, str(index))
    assert seen == [str(index) for index in range(10)]


async def test_who_is_cancelled_leaves_its_turn_to_the_next() -> None:
    turnstile = Turnstile()
    async with _opened(turnstile, max_concurrent=1) as (scripted, endpoint):
        async with anyio.create_task_group() as under_way, anyio.create_task_group() as queued:
            under_way.start_soon(_ask, endpoint)
            await scripted.arrived(1)
            queued.start_soon(_ask, endpoint)
            await anyio.wait_all_tasks_blocked()
            queued.cancel_scope.cancel()
            under_way.cancel_scope.cancel()
        turnstile.go_on.set()
        assert (await _ask(endpoint)).text == "x"
    assert len(scripted.requests) == 2


async def test_nobody_calls_before_the_time_that_a_429_named() -> None:
    pause_s = 0.4
    turnstile = Turnstile()

    async def script(asked: Asked) -> Reply:
        if asked.index == 0:
            return rate_limited(str(pause_s))
        return await turnstile(asked)

    settings = {"keypoint_detection": QuestionConfig(model="other"), "max_concurrent": 4}
    async with (
        scripted_endpoint(script) as scripted,
        _endpoints(scripted, **settings) as endpoints,
        anyio.create_task_group() as group,
    ):
        group.start_soon(_ask, endpoints["evaluation"])
        await scripted.arrived(1)
        turnstile.go_on.set()
        for index in range(12):
            group.start_soon(_ask, endpoints[("keypoint_detection", "evaluation")[index % 2]])
    times = [request.time_s for request in scripted.requests]
    # Those whose call had begun when the refusal came are not called back.
    late = [moment for moment in times[1:] if moment - times[0] > 0.9 * pause_s]
    assert len(times) == 14
    assert len(late) >= 14 - 4
    assert scripted.outcomes.count("429") == 1


def _used_up(kind: str, reset: str) -> Script:
    """The first answer uses a limit up."""
    exhausted = {f"x-ratelimit-remaining-{kind}": "0", f"x-ratelimit-reset-{kind}": reset}
    sent = says("x").sent("m", Usage(prompt_tokens=1, cached_tokens=0))
    return in_turn(replace(sent, headers=exhausted), sent)


@pytest.mark.parametrize("kind", ["requests", "tokens"])
async def test_a_limit_that_is_used_up_is_said(kind: str) -> None:
    async with _opened(_used_up(kind, "1h")) as (_, endpoint):
        await _ask(endpoint)
        assert "rate limit" in endpoint.waiting


@pytest.mark.parametrize("kind", ["requests", "tokens"])
async def test_a_limit_that_is_used_up_is_waited_for_before_it_refuses(kind: str) -> None:
    async with _opened(_used_up(kind, "300ms")) as (scripted, endpoint):
        await _ask(endpoint)
        second = await _ask(endpoint)
    first_s, second_s = (request.time_s for request in scripted.requests)
    assert second_s - first_s >= 0.29
    assert second.num_failures == 0


async def test_another_key_is_not_held_up() -> None:
    def script(asked: Asked) -> Reply:
        return rate_limited("3600") if asked.key == KEY else says("x")

    other = QuestionConfig(openai_api_key_env_var="OTHER_KEY")
    async with scripted_endpoint(script) as scripted:
        config = OpenAIConfig(
            base_url=scripted.base_url, openai_api_key_env_var="TEST_KEY", keypoint_detection=other, patience_s=0.1
        )
        async with open_endpoints(config, ENVIRON | {"OTHER_KEY": "k2"}) as endpoints:
            with pytest.raises(NoVerdict):
                await _ask(endpoints["evaluation"])
            assert (await _ask(endpoints["keypoint_detection"])).text == "x"


async def test_failures_are_repeated_no_more_than_they_require() -> None:
    script = failing(lambda asked: says(asked.messages[1].content[-1]), 0.3, random.Random(5))  # type: ignore[arg-type]
    answers: dict[str, Answer] = {}

    async with _opened(script, max_concurrent=8) as (scripted, endpoint):

        async def ask(text: str) -> None:
            answers[text] = await _ask(endpoint, text)

        async with anyio.create_task_group() as group:
            for index in range(200):
                group.start_soon(ask, str(index))
    num_failed = sum(outcome != "answered" for outcome in scripted.outcomes)
    assert {text: answer.text for text, answer in answers.items()} == {str(index): str(index) for index in range(200)}
    assert num_failed > 30
    assert (len(scripted.requests), sum(answer.num_failures for answer in answers.values())) == (200 + num_failed, num_failed)
    assert scripted.most_under_way <= 8


async def test_a_key_is_nowhere_to_be_read(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    written = io.StringIO()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(written))
    errors: list[Exception] = []
    replies = (failed(401), failed(404), failed(400), failed(429, headers={"retry-after": "9"}), server_error())
    try:
        for reply in replies:
            loud = Sent(reply.status, reply.body.replace(b'"no"', f'"no such key: {KEY}"'.encode()), reply.headers)
            async with _opened(lambda _, loud=loud: loud, patience_s=0.05) as (_, endpoint):  # type: ignore[misc]
                with pytest.raises((NoVerdict, ConfigurationError)) as raised:
                    await _ask(endpoint)
                errors.append(raised.value)
                assert KEY not in repr(endpoint) + str(endpoint) + endpoint.waiting + str(vars(raised.value))
    finally:
        structlog.reset_defaults()
    assert len(errors) == len(replies)
    assert "endpoint_failed" in written.getvalue()
    assert caplog.records
    assert KEY not in written.getvalue() + caplog.text + "".join(map(repr, errors))


async def test_without_a_key_this_machine_gets_any_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "GEMINI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(variable, KEY)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    seen: list[Mapping[str, str]] = []

    def script(asked: Asked) -> Reply:
        seen.append(asked.headers)
        return says("x")

    async with scripted_endpoint(script) as scripted:
        config = OpenAIConfig(base_url=scripted.base_url)
        async with open_endpoints(config, {"GEMINI_API_KEY": KEY}) as endpoints:
            await _ask(endpoints["evaluation"])
    assert seen[0]["authorization"] == "Bearer none"
    assert KEY not in str(seen)


async def test_a_missing_key_is_told_before_anything_is_asked() -> None:
    with pytest.raises(ConfigurationError, match="GEMINI_API_KEY is not set"):
        async with open_endpoints(OpenAIConfig(), {}):
            raise AssertionError("opened")
