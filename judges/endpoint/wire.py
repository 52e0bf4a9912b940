"""Chat completions as they travel: a question's request, and the part of a completion that an answer needs."""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from judges.endpoint.forms import Form
from judges.endpoint.port import Answer, Question
from schemas.messages import Screenshot

_FILTERED: Final = "content_filter"
_MOST_TOKENS: Final = 10**9


class NoCompletion(ValueError):
    """A body that is no completion, though it was sent as one."""


class _Message(Struct, frozen=True):
    content: object = None


class _Choice(Struct, frozen=True):
    message: _Message | None = None
    finish_reason: str | None = None


class _CachedTokens(Struct, frozen=True):
    cached_tokens: int | None = None


class _Usage(Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _CachedTokens | None = None


class _Completion(Struct, frozen=True):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None


def messages_of(question: Question) -> list[dict[str, object]]:
    """The system prompt, then one message of the user; screenshots are data URLs in their places."""
    return [
        {"role": "system", "content": question.system},
        {"role": "user", "content": [_part(part) for part in question.content]},
    ]


def response_format(form: Form, question: Question) -> Mapping[str, Any]:
    """Arguments of a request that ask for the form; none for text."""
    if form == "text":
        return {}
    if form == "json_object":
        return {"response_format": {"type": "json_object"}}
    schema = {"name": question.schema_name, "schema": question.schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def read_completion(body: bytes) -> Answer:
    """What the model said; the text is empty when there is none.

    Raises:
        NoCompletion: the body is no completion: a page of a proxy, JSON that ends in the middle.
    """
    try:
        completion = msgspec.convert(json.loads(body), type=_Completion)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise NoCompletion(str(error)) from error
    choice = completion.choices[0] if completion.choices else _Choice()
    content = choice.message.content if choice.message else None
    is_text = isinstance(content, str) and choice.finish_reason != _FILTERED
    usage = completion.usage or _Usage()
    cached = usage.prompt_tokens_details or _CachedTokens()
    return Answer(
        text=str(content) if is_text else "",
        finish_reason=choice.finish_reason or "",
        prompt_tokens=_count(usage.prompt_tokens),
        cached_tokens=_count(cached.cached_tokens),
        completion_tokens=_count(usage.completion_tokens),
    )


def filtered_answer() -> Answer:
    """Of a question at which the endpoint's filter took offence."""
    return Answer(text="", finish_reason=_FILTERED)


def _count(stated: int | None) -> int:
    """What an endpoint states, kept within what tokens can be: nothing gives a budget back or outgrows a message."""
    return min(max(stated or 0, 0), _MOST_TOKENS)


def _part(part: str | Screenshot) -> dict[str, object]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    data = base64.b64encode(part.data).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{data}"}}
