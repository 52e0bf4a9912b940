"""Reads why an OpenAI-compatible endpoint did not take a request, from the codes in its answer. Pure."""

from collections.abc import Iterator, Mapping

_OF_FILTER = ("content_filter", "content_policy_violation")
_OF_KEY = "API_KEY_INVALID"


def is_of_filter(code: str | None) -> bool:
    """Whether a content filter took offence at what was asked."""
    return code in _OF_FILTER


def is_of_key(body: object) -> bool:
    """Whether the key is refused, which Google says with status 400."""
    return any(detail.get("reason") == _OF_KEY for detail in error_details(body))


def error_details(body: object) -> Iterator[Mapping[str, object]]:
    """Google's details of an error, whether its body is the error, holds it, or is a list of such."""
    if isinstance(body, list):
        for item in body:
            yield from error_details(item)
    elif isinstance(body, Mapping):
        details = body.get("details")
        yield from (detail for detail in details if isinstance(detail, Mapping)) if isinstance(details, list) else ()
        yield from error_details(body.get("error"))
