"""OpenAI's chat messages with tools, a record an episode; of OpenWebRL's release also the raw rows, one a turn.

A record: `{"tools": [...], "messages": [{"role", "content": text or parts, "tool_calls"}, ...], "metadata": {...}}`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ops.sft.conversation import Conversation, Message, Role
from ops.sft.fields import Fields, fields_in, items_in, note_unread, text_in
from ops.sft.findings import BadRecord, Findings
from ops.sft.formats import Found, ReadingOptions, reader
from ops.sft.formats.openwebrl import Rows, is_row
from ops.sft.images import PLACEHOLDER, FindImage, ImageQueue, image_finder, image_queue, split_at
from ops.sft.json_files import data_files, json_records
from ops.sft.shared_parts import about_in, call_in, tools_in
from schemas.messages import Screenshot

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_REASONING = ("reasoning_content", "reasoning", "thinking")
"""Different servers' names for a thought beside the content."""
_OF_MESSAGE = ("role", "content", "tool_calls", "function_call", "name", "tool_call_id", "weight", *_REASONING)


@reader("openai")
def read_openai(path: Path, findings: Findings, options: ReadingOptions) -> Iterator[Found]:
    """Of a folder, all `.jsonl` and `.json` files."""
    del options
    for file in data_files(path, ".jsonl", ".json"):
        rows, find = Rows(), image_finder(file.parent)
        for record in json_records(file, findings):
            if is_row(record.fields):
                with findings.record(file, record.number):
                    rows.add(record)
                continue
            with findings.record(file, record.number):
                yield Found(file, record.number, conversation_of(record.fields, find, findings))
        yield from rows.episodes(find, findings)


def conversation_of(fields: Fields, find: FindImage, findings: Findings) -> Conversation:
    """With a column `images`, those are what parts of type `image`, and `<image>` in a text, stand for.

    Raises:
        BadRecord: it cannot be read.
    """
    note_unread(fields, ("messages", "tools", "metadata", "images"), findings)
    images = image_queue(fields["images"], find) if fields.get("images") is not None else None
    messages = [
        _message(fields_in(value, f"message {number}"), number, find, findings, images)
        for number, value in enumerate(items_in(fields.get("messages"), "messages"), start=1)
    ]
    if images is not None:
        images.close()
    return Conversation(
        messages=tuple(messages), tools=tools_in(fields.get("tools")), about=about_in(fields.get("metadata"), findings)
    )


def _message(fields: Fields, number: int, find: FindImage, findings: Findings, images: ImageQueue | None) -> Message:
    what = f"message {number}"
    note_unread(fields, _OF_MESSAGE, findings, "messages.")
    said = text_in(fields.get("role"), f"{what}.role")
    if said not in _ROLES:
        raise BadRecord(f"{what} has the role {said!r:.40}: {', '.join(_ROLES)} are known")
    parts = _parts(fields.get("content"), what, find, findings, images)
    if reasoning := next(filter(None, (text_in(fields.get(name), f"{what}.{name}") for name in _REASONING)), ""):
        parts = (f"<think>\n{reasoning}\n</think>\n\n", *parts)
    named = {name: text_in(fields.get(name), f"{what}.{name}") for name in ("name", "tool_call_id")}
    calls = list(items_in(fields.get("tool_calls"), f"{what}.tool_calls"))
    if not calls and fields.get("function_call") is not None:
        calls = [fields["function_call"]]
    return Message(
        role=_ROLES[said],
        parts=parts,
        calls=tuple(call_in(call, f"{what}, call {place}") for place, call in enumerate(calls, start=1)),
        named={name: value for name, value in named.items() if value},
        trained=fields.get("weight") != 0,
    )


def _parts(
    content: object, what: str, find: FindImage, findings: Findings, images: ImageQueue | None
) -> tuple[str | Screenshot, ...]:
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (content,) if images is None else split_at(content, PLACEHOLDER, images)
    found: list[str | Screenshot] = []
    for number, value in enumerate(items_in(content, f"{what}.content"), start=1):
        part = fields_in(value, f"{what}, part {number}")
        note_unread(part, ("type", "text", "image_url", "image"), findings, "messages.content.")
        kind = part.get("type")
        if kind == "text":
            text = text_in(part.get("text"), f"{what}, part {number}")
            found += (text,) if images is None else split_at(text, PLACEHOLDER, images)
        elif kind in ("image_url", "image"):
            found.append(_image(part, f"the image of {what}, part {number}", find, images))
        else:
            raise BadRecord(f"{what}, part {number} is of type {kind!r:.40}: text, image_url and image are known")
    return tuple(part for part in found if part != "")


def _image(part: Fields, what: str, find: FindImage, images: ImageQueue | None) -> Screenshot:
    given = part.get("image_url", part.get("image"))
    if isinstance(given, Mapping) and "url" in given:
        given = given["url"]
    if given is None and images is not None:
        return images.take()
    return find(given, what)
