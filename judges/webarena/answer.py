"""Reads the answer that WebArena-Verified asks for: one JSON object, alone or as the first fenced block of a text. Pure.

Refuses only what the benchmark's evaluators would refuse too, or fail over.
"""

import json
import re
from typing import Any

TASK_TYPES = ("RETRIEVE", "MUTATE", "NAVIGATE")
STATUSES = (
    "SUCCESS",
    "ACTION_NOT_ALLOWED_ERROR",
    "PERMISSION_DENIED_ERROR",
    "NOT_FOUND_ERROR",
    "DATA_VALIDATION_ERROR",
    "UNKNOWN_ERROR",
)
_FENCED = re.compile(r"```(?:json)?(.*?)```", re.DOTALL)
_LONGEST = 100_000
_SHOWN = 80
_FORM = '{"task_type": ..., "status": ..., "retrieved_data": ..., "error_details": ...}'
_WRITE = {"task_type": TASK_TYPES, "performed_operation": TASK_TYPES, "status": STATUSES}
"""`performed_operation` is the older name of `task_type`."""


class NoResponse(ValueError):
    """An answer that is not of the form, with what to write instead."""


def read_response(answer: str) -> dict[str, Any]:
    """Raises `NoResponse`."""
    if not answer.strip():
        raise NoResponse("there is no final answer")
    if len(answer) > _LONGEST:
        raise NoResponse(f"the answer has {len(answer):,} characters: write at most {_LONGEST:,}")
    fenced = _FENCED.search(answer)
    text = (fenced[1] if fenced else answer).strip()
    try:
        value = json.loads(text)
    except RecursionError:
        raise NoResponse("the answer's lists and objects stand too deep in each other") from None
    except ValueError as error:
        raise NoResponse(f"the answer {_shown(text)} is no JSON ({error}): write {_FORM}") from error
    if not isinstance(value, dict) or not value:
        raise NoResponse(f"the answer {_shown(text)} is no JSON object with members: write {_FORM}")
    for name, words in _WRITE.items():
        if name in value and not isinstance(value[name], str):
            said = _shown(json.dumps(value[name]))
            raise NoResponse(f"the answer's {name} is {said}, which is no text: write {', '.join(words)}")
    return value


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return f"{text[:_SHOWN]}…" if len(text) > _SHOWN else text
