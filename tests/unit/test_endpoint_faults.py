"""What each failure of an endpoint means, and when it is called again."""

import json
import random

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.endpoint.faults import Fault, Filtered, Misconfigured, Refused, Retry, backoff_s, fault_of
from judges.endpoint.forms import FORMS, FormMemory
from judges.endpoint.limits import duration_s, exhausted_for_s, retry_after_s
from judges.endpoint.wire import NoCompletion, read_completion

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT
REQUEST = httpx2.Request("POST", "https://example.org/v1/chat/completions")
CLIENT = openai.AsyncOpenAI(api_key="k", base_url="https://example.org/v1")


def _error(status: int, body: object, headers: dict[str, str] | None = None) -> openai.APIStatusError:
    response = httpx2.Response(status, headers=headers or {}, request=REQUEST, content=json.dumps(body).encode())
    return CLIENT._make_status_error_from_response(response)


def _openai(code: str | None = None, param: str | None = None) -> dict[str, object]:
    return {"error": {"message": "no\nway", "type": "t", "code": code, "param": param}}


def _google(code: int, *details: dict[str, str]) -> list[dict[str, object]]:
    return [{"error": {"code": code, "message": "Resource exhausted", "status": "X", "details": list(details)}}]


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (_error(400, _openai("invalid_value", "response_format")), Refused("400 invalid_value (no way)", "response_format")),
        (_error(400, _openai(param="temperature")), Refused("400 (no way)", "temperature")),
        (_error(400, "<html>"), Refused("400")),
        (_error(301, "<html>"), Misconfigured("301: it sends callers to another address")),
        (_error(413, _openai()), Refused("413 (no way)", "messages")),
        (_error(422, _openai()), Refused("422 (no way)")),
        (_error(400, _openai("content_filter")), Filtered("400 content_filter")),
        (_error(400, _openai("content_policy_violation")), Filtered("400 content_policy_violation")),
        (_error(401, _openai("invalid_api_key")), Misconfigured("401 invalid_api_key")),
        (_error(403, _openai()), Misconfigured("403")),
        (_error(404, _openai("model_not_found")), Misconfigured("404 model_not_found (no way)")),
        (_error(400, _google(400, {"reason": "API_KEY_INVALID"})), Misconfigured("400")),
        (_error(408, _openai()), Retry("408")),
        (_error(409, _openai()), Retry("409")),
        (_error(500, _openai()), Retry("500")),
        (_error(503, _openai(), {"retry-after": "7"}), Retry("503", 7.0)),
        (_error(502, "<html>"), Retry("502")),
        (_error(529, _openai()), Retry("529")),
        (_error(429, _openai()), Retry("429 (no way)", for_all=True)),
        (_error(429, _openai(), {"retry-after": "2.5"}), Retry("429 (no way)", 2.5, for_all=True)),
        (_error(429, _openai(), {"retry-after-ms": "30", "retry-after": "9"}), Retry("429 (no way)", 0.03, for_all=True)),
        (
            _error(429, _openai(), {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}),
            Retry("429 (no way)", 360.0, for_all=True),
        ),
        (_error(429, _google(429, {"retryDelay": "34s"})), Retry("429 (Resource exhausted)", 34.0, for_all=True)),
        (
            _error(429, _openai("insufficient_quota"), {"retry-after": "1"}),
            Retry("429 insufficient_quota: the account's quota is used up", 60.0, for_all=True, for_a_person=True),
        ),
        (_error(402, _openai()), Retry("402: the account's quota is used up", 60.0, for_all=True, for_a_person=True)),
        (openai.APITimeoutError(REQUEST), Retry("no answer in time")),
        (openai.APIConnectionError(request=REQUEST), Retry("no connection")),
    ],
)
def test_faults(error: openai.OpenAIError, fault: Fault) -> None:
    assert fault_of(error, now=NOW) == fault


def test_what_a_refused_key_was_is_not_repeated() -> None:
    error = _error(401, {"error": {"message": "Incorrect API key provided: sesame"}})
    assert "sesame" not in repr(fault_of(error, now=NOW))


def test_backoff_grows_and_is_bounded() -> None:
    class Highest(random.Random):
        def uniform(self, a: float, b: float) -> float:
            return b

    assert [backoff_s(failures, Highest()) for failures in (1, 2, 3, 8, 9, 5000)] == [0.5, 1, 2, 60, 60, 60]
    drawn = [backoff_s(3, random.Random(seed)) for seed in range(200)]
    assert min(drawn) < 0.2
    assert 1.8 < max(drawn) <= 2


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0), ("6m0s", 360.0), ("20ms", 0.02), ("1h2m3.5s", 3723.5), ("1d", 86400.0), ("12", 12.0), (" 0.5 ", 0.5),
        ("", None), ("soon", None), ("1s later", None), ("-3", 0.0), ("nan", None), ("inf", None), ("1w", None),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: float | None) -> None:
    assert duration_s(text) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0),
        ({"retry-after": "Tue, 14 Nov 2023 23:13:50 GMT", "date": "Tue, 14 Nov 2023 23:13:20 GMT"}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 21:13:50 GMT", "date": "Tue, 14 Nov 2023 21:13:20 GMT"}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT", "date": "today"}, 30.0),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "2"}, 2.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, None, now=NOW) == seconds


@pytest.mark.parametrize(
    ("requests", "tokens", "seconds"),
    [
        (("1", "6m0s"), ("5", "9s"), 0.0),
        (("0", "20ms"), ("5", "9s"), 0.02),
        (("0", "20ms"), ("0", "9s"), 9.0),
        (("0", "?"), ("1", ""), 0.0),
    ],
)
def test_used_up_limits(requests: tuple[str, str], tokens: tuple[str, str], seconds: float) -> None:
    headers = {
        f"x-ratelimit-{what}-{kind}": text
        for kind, texts in (("requests", requests), ("tokens", tokens))
        for what, text in zip(("remaining", "reset"), texts, strict=True)
    }
    assert exhausted_for_s(headers) == pytest.approx(seconds)
    assert exhausted_for_s({}) == 0


@given(st.text(), st.text(), st.recursive(st.none() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(
    st.sampled_from(["error", "details", "retryDelay"]), inner)))  # fmt: skip
def test_nothing_that_an_endpoint_sends_breaks_the_reading(header: str, other: str, body: object) -> None:
    headers = {"retry-after": header, "retry-after-ms": other, "date": other, "x-ratelimit-remaining-tokens": "0",
               "x-ratelimit-reset-tokens": other}  # fmt: skip
    wait = retry_after_s(headers, body, now=NOW)
    assert wait is None or wait >= 0
    assert exhausted_for_s(headers) >= 0


@pytest.mark.parametrize(
    ("taken", "first"),
    [
        ((), "json_schema"),
        (("json_schema",), "json_schema"),
        (("json_object",), "json_object"),
        (("text",), "text"),
        # A form that was taken once: the question after it was a peculiar one.
        (("json_schema", "text"), "json_schema"),
        (("json_object", "text"), "json_object"),
        # The peculiar one came first.
        (("text", "json_schema"), "json_schema"),
    ],
)
def test_the_strictest_form_that_was_taken_comes_first(taken: tuple[str, ...], first: str) -> None:
    memory = FormMemory("auto")
    for form in taken:
        memory.taken(form, "schema")  # type: ignore[arg-type]
    assert memory.to_try == FORMS[FORMS.index(first) :]


def test_another_form_is_tried_only_where_it_may_cure_a_refusal() -> None:
    memory = FormMemory("auto")
    assert memory.may_cure("json_schema", "score", "bad")
    memory.taken("json_schema", "score")
    assert not memory.may_cure("json_schema", "score", "a context of 40,123 tokens")
    # Plain text demands no form: what is refused in it is refused for something else.
    assert [memory.may_cure(form, "verdict", "at most 10 images") for form in FORMS[:2]] == [True, True]
    memory.may_cure("text", "verdict", "at most 10 images")
    assert not memory.may_cure("json_schema", "verdict", "at most 10 images")
    assert memory.may_cure("json_schema", "verdict", "no nested schemas here")
    assert memory.may_cure("json_schema", "another", "at most 10 images")


def test_a_peculiar_question_at_the_beginning_leaves_all_forms_to_try() -> None:
    """An endpoint without schemas, which says the same of everything that it refuses."""
    memory = FormMemory("auto")
    for form in FORMS:
        memory.may_cure(form, "verdict", "400")
    assert memory.may_cure("json_schema", "verdict", "400")


@pytest.mark.parametrize(
    ("parameter", "may_be"),
    [("", True), ("response_format", True), ("text.format", True), ("messages", False), ("messages.[1].content[3]", False),
     ("max_completion_tokens", False)],
)  # fmt: skip
def test_a_refusal_that_names_another_cause_is_not_of_the_form(parameter: str, may_be: bool) -> None:
    assert Refused("400", parameter).may_be_of_form == may_be


def test_a_wanted_form_is_the_only_one() -> None:
    memory = FormMemory("json_object")
    memory.taken("json_object", "schema")
    assert memory.to_try == ("json_object",)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'"x"', b'{"choices": 3}', b'{"choices": [{"message": "x"}]}', b"\xff", b"[" * 9999]
)
def test_what_is_no_completion(body: bytes) -> None:
    with pytest.raises(NoCompletion):
        read_completion(body)


@pytest.mark.parametrize("body", [{}, {"choices": None}, {"choices": [{}]}, {"choices": [{"message": {"content": [1]}}]}])
def test_a_completion_that_says_nothing(body: dict[str, object]) -> None:
    answer = read_completion(json.dumps(body).encode())
    assert (answer.text, answer.finish_reason, answer.prompt_tokens) == ("", "", 0)


@pytest.mark.parametrize(("stated", "counted"), [(-5, 0), (10**30, 10**9), (None, 0), (7, 7)])
def test_token_counts_are_counts(stated: int | None, counted: int) -> None:
    usage = {
        "prompt_tokens": stated,
        "completion_tokens": stated,
        "prompt_tokens_details": {"cached_tokens": stated},
    }
    answer = read_completion(json.dumps({"choices": [], "usage": usage}).encode())
    assert (answer.prompt_tokens, answer.cached_tokens, answer.completion_tokens) == (counted, counted, counted)
