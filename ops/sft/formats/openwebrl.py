"""OpenWebRL's raw release: rows of one turn each, as its runtime rendered them for Qwen3-VL, put together to episodes.

A row: `{"prompt": text, "response": text, "rollout_idx": n, "metadata": {"task_id", "turn_index", "images": [data URL],
"messages": [...]}}`. The messages of an episode's last row are the whole episode, as text with a placeholder for the
screenshot of each row; calls stand in the text of answers, and the tools in the prompt.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ops.sft.conversation import Conversation, Message, Role
from ops.sft.fields import Fields, fields_in, items_in, note_unread, parsed_in, text_in
from ops.sft.findings import BadRecord, Findings
from ops.sft.formats import Found
from ops.sft.images import FindImage, ImageQueue, image_queue, split_at
from ops.sft.json_files import JsonRecord, record_at
from ops.sft.shared_parts import about_in, call_in

_PLACEHOLDER = "<|vision_start|><|image_pad|><|vision_end|>"
_TOOLS = re.compile(r"<tools>\n(.*?)\n</tools>", re.DOTALL)
_OPENING, _CLOSING = "<tool_call>", "</tool_call>"
_ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def is_row(fields: Fields) -> bool:
    """Whether a record is one turn, rather than an episode."""
    metadata = fields.get("metadata")
    return "messages" not in fields and isinstance(metadata, Mapping) and "turn_index" in metadata


@dataclass
class Rows:
    """The rows of one file, by episode; of each only where it stands is kept."""

    _by_episode: dict[tuple[str, str], dict[int, JsonRecord]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, record: JsonRecord) -> None:
        """Raises `BadRecord` for a row that does not say which turn it is, or that is there twice."""
        metadata = fields_in(record.fields.get("metadata"), "metadata")
        turn = metadata.get("turn_index")
        if not isinstance(turn, int):
            raise BadRecord("metadata.turn_index is no number")
        key = json.dumps(metadata.get("task_id"), default=str), json.dumps(record.fields.get("rollout_idx"), default=str)
        turns = self._by_episode[key]
        if turn in turns:
            raise BadRecord(f"turn {turn} of task {key[0]}, rollout {key[1]} is record {turns[turn].number} too")
        light = record if record.offset < 0 else JsonRecord(record.file, record.number, record.offset, {})
        turns[turn] = light

    def episodes(self, find: FindImage, findings: Findings) -> Iterator[Found]:
        """In the order of their first rows; a problem stands at the episode's last row."""
        for turns in self._by_episode.values():
            rows = [turns[turn] for turn in sorted(turns)]
            last = rows[-1]
            with findings.record(last.file, last.number):
                yield Found(last.file, last.number, _episode(rows, find, findings))


def _episode(rows: list[JsonRecord], find: FindImage, findings: Findings) -> Conversation:
    images: list[object] = []
    for row in rows:
        whole = _fields(row)
        shown = items_in(fields_in(whole.get("metadata"), "metadata").get("images"), "metadata.images")
        if len(shown) != 1:
            raise BadRecord(f"record {row.number}, a turn of this episode, has {len(shown)} images: one is expected")
        images += shown
    note_unread(whole, ("prompt", "response", "rollout_idx", "metadata"), findings)
    metadata = fields_in(whole.get("metadata"), "metadata")
    queue = image_queue(images, find)
    skeleton = items_in(metadata.get("messages"), "metadata.messages")
    messages = [
        _message(fields_in(value, f"message {number}"), number, queue, findings)
        for number, value in enumerate(skeleton, start=1)
    ]
    response = text_in(whole.get("response"), "response")
    if response and messages and messages[-1].role != "assistant":
        messages.append(_answer(response))
    queue.close()
    about = {name: value for name, value in metadata.items() if name not in ("messages", "images", "turn_index")}
    return Conversation(
        messages=tuple(messages), tools=_tools(text_in(whole.get("prompt"), "prompt")), about=about_in(about, findings)
    )


def _fields(row: JsonRecord) -> Fields:
    return row.fields if row.offset < 0 else record_at(row)


def _message(fields: Fields, number: int, images: ImageQueue, findings: Findings) -> Message:
    note_unread(fields, ("role", "content", "name"), findings, "metadata.messages.")
    role = text_in(fields.get("role"), f"message {number}.role")
    if role not in _ROLES:
        raise BadRecord(f"message {number} has the role {role!r:.40}: {', '.join(_ROLES)} are known")
    content = text_in(fields.get("content"), f"message {number}.content")
    if role == "assistant":
        return _answer(content)
    name = text_in(fields.get("name"), f"message {number}.name")
    return Message(role=_ROLES[role], parts=split_at(content, _PLACEHOLDER, images), named={"name": name} if name else {})


def _answer(said: str) -> Message:
    """Well-formed calls are taken out of the text, as chat templates put them in; others stay where they are."""
    kept, calls = "", []
    before, opened, rest = said.partition(_OPENING)
    while opened:
        body, closed, behind = rest.partition(_CLOSING)
        call = _call(body) if closed else None
        kept += before if call else before + opened + body + closed
        calls += [call] if call else []
        before, opened, rest = behind.partition(_OPENING)
    text = (kept + before).rstrip()
    return Message(role="assistant", parts=(text,) if text else (), calls=tuple(calls))


def _call(body: str) -> Fields | None:
    try:
        return call_in(parsed_in(body, "a call"), "a call")
    except BadRecord:
        return None


def _tools(prompt: str) -> tuple[Fields, ...]:
    """Those that a rendered prompt lists, one a line."""
    listed = _TOOLS.search(prompt)
    lines = listed[1].splitlines() if listed else []
    return tuple(fields_in(parsed_in(line, "a tool in prompt"), "a tool in prompt") for line in lines if line.strip())
