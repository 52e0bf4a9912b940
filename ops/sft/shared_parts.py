"""Parts that records of every format may have: tools, calls, and what is said about the task."""

import msgspec

from ops.sft.conversation import About
from ops.sft.fields import Fields, fields_in, items_in, note_unread, parsed_in, text_in
from ops.sft.findings import BadRecord, Findings
from schemas.ranges import Whole

_ABOUT = {
    "task_id": "task",
    "intent": "instruction",
    "start_url": "website",
    "domain": "domain",
    "subdomain": "subdomain",
}
_COUNTED = ("difficulty", "n_turns", "rollout_idx")
"""Of `metadata`, numbers that are read, or that say what the messages say."""


def tools_in(value: object) -> tuple[Fields, ...]:
    """A list of tools, or its JSON as text. Raises `BadRecord`."""
    if value == "":
        return ()
    return tuple(
        fields_in(tool, f"tool {number}") for number, tool in enumerate(items_in(parsed_in(value, "tools"), "tools"), start=1)
    )


def about_in(value: object, findings: Findings) -> About:
    """Raises `BadRecord` for a field of another type than it has."""
    fields = fields_in({} if value is None else parsed_in(value, "metadata"), "metadata")
    note_unread(fields, (*_ABOUT, *_COUNTED), findings, "metadata.")
    given = {ours: _word(fields.get(theirs), f"metadata.{theirs}") for theirs, ours in _ABOUT.items()}
    return About(**given, difficulty=_difficulty(fields.get("difficulty"), findings))


def _difficulty(value: object, findings: Findings) -> int:
    if value is None:
        return 1
    try:
        return msgspec.convert(value, Whole)
    except msgspec.ValidationError:
        findings.ignore("metadata.difficulty that is no whole number")
        return 1


def _word(value: object, what: str) -> str:
    return str(value) if isinstance(value, int) else text_in(value, what)


def call_in(value: object, what: str) -> Fields:
    """A call as chat templates take it. Raises `BadRecord`."""
    fields = fields_in(value, what)
    function = fields_in(fields.get("function", fields), f"{what}.function")
    name = text_in(function.get("name"), f"{what}.name")
    if not name:
        raise BadRecord(f"{what} names no function")
    arguments = parsed_in(function.get("arguments") or {}, f"{what}.arguments")
    return {"type": "function", "function": {"name": name, "arguments": fields_in(arguments, f"{what}.arguments")}}
