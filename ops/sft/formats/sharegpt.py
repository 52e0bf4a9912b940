"""ShareGPT's conversations, and LLaMA-Factory's columns and tags for the same: text with `<image>` for each of the images.

A record: `{"conversations": [{"from": "human", "value": text}, {"from": "gpt", ...}], "system", "tools", "images": [paths]}`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ops.sft.conversation import Conversation, Message, Role
from ops.sft.fields import Fields, fields_in, items_in, note_unread, parsed_in, text_in
from ops.sft.findings import BadRecord, Findings
from ops.sft.formats import Found, ReadingOptions, reader
from ops.sft.images import PLACEHOLDER, FindImage, image_finder, image_queue, split_at
from ops.sft.json_files import data_files, json_records
from ops.sft.shared_parts import about_in, call_in, tools_in


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Names of columns and of what stands in messages; LLaMA-Factory's own defaults, which are ShareGPT's."""

    messages: str = "conversations"
    system: str = "system"
    tools: str = "tools"
    images: str = "images"
    role_tag: str = "from"
    content_tag: str = "value"
    user_tag: str = "human"
    assistant_tag: str = "gpt"
    observation_tag: str = "observation"
    function_tag: str = "function_call"
    system_tag: str = "system"

    @property
    def roles(self) -> Mapping[str, Role]:
        """By what messages say; a call's is an assistant's."""
        return {
            self.system_tag: "system",
            self.observation_tag: "tool",
            self.function_tag: "assistant",
            self.user_tag: "user",
            self.assistant_tag: "assistant",
        }


@reader("sharegpt")
def read_sharegpt(path: Path, findings: Findings, options: ReadingOptions) -> Iterator[Found]:
    """Of a folder, all `.json` and `.jsonl` files. Paths of images are relative to their file's folder."""
    del options
    for file in data_files(path, ".json", ".jsonl"):
        yield from read_file(file, Layout(), image_finder(file.parent), findings)


def read_file(file: Path, layout: Layout, find: FindImage, findings: Findings) -> Iterator[Found]:
    for record in json_records(file, findings):
        with findings.record(file, record.number):
            yield Found(file, record.number, conversation_of(record.fields, layout, find, findings))


def conversation_of(fields: Fields, layout: Layout, find: FindImage, findings: Findings) -> Conversation:
    """Raises `BadRecord` where it cannot be read."""
    note_unread(fields, (layout.messages, layout.system, layout.tools, layout.images, "metadata"), findings)
    images = image_queue(fields.get(layout.images), find)
    messages: list[Message] = []
    if system := text_in(fields.get(layout.system), layout.system):
        messages.append(Message(role="system", parts=(system,)))
    for number, value in enumerate(items_in(fields.get(layout.messages), layout.messages), start=1):
        said = fields_in(value, f"message {number}")
        note_unread(said, (layout.role_tag, layout.content_tag), findings, f"{layout.messages}.")
        tag = text_in(said.get(layout.role_tag), f"message {number}.{layout.role_tag}")
        content = text_in(said.get(layout.content_tag), f"message {number}.{layout.content_tag}")
        if tag not in layout.roles:
            raise BadRecord(f"message {number} is of {tag!r:.40}: {', '.join(layout.roles)} are known")
        if tag == layout.function_tag:
            messages.append(_called(content, f"message {number}"))
        else:
            messages.append(Message(role=layout.roles[tag], parts=split_at(content, PLACEHOLDER, images)))
    images.close()
    tools = tuple(_as_function(tool) for tool in tools_in(fields.get(layout.tools)))
    return Conversation(messages=tuple(messages), tools=tools, about=about_in(fields.get("metadata"), findings))


def _called(content: str, what: str) -> Message:
    """A message that is one call, or a list of them, in JSON; a thought may stand before it."""
    thought, closed, rest = content.rpartition("</think>")
    found = parsed_in(rest, what)
    calls = found if isinstance(found, list) else [found]
    kept = f"{thought}{closed}"
    return Message(
        role="assistant", parts=(kept,) if kept else (), calls=tuple(call_in(call, f"the call in {what}") for call in calls)
    )


def _as_function(tool: Fields) -> Fields:
    """LLaMA-Factory's tools may be bare functions; chat templates take them wrapped."""
    return tool if "function" in tool else {"type": "function", "function": tool}
