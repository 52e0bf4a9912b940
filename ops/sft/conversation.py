"""A conversation to be imitated, as values: what a reader makes of a record, whatever its format."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ops.sft.findings import BadRecord
from schemas.messages import Screenshot

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Role
    parts: tuple[str | Screenshot, ...]
    """In the order in which the model reads them."""
    calls: tuple[Mapping[str, object], ...] = ()
    """Of an assistant, as chat templates take them: `{"type": "function", "function": {"name": ..., "arguments": ...}}`."""
    named: Mapping[str, str] = field(default_factory=dict)
    """What a tool's answer belongs to: `name`, `tool_call_id`."""
    trained: bool = True
    """False: an answer that is context alone (OpenAI's `weight: 0`)."""

    @property
    def text(self) -> str:
        return "".join(part for part in self.parts if isinstance(part, str))

    @property
    def screenshots(self) -> tuple[Screenshot, ...]:
        return tuple(part for part in self.parts if isinstance(part, Screenshot))


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What the data says of a conversation's task; empty where it says nothing."""

    task: str = ""
    """Names it: conversations of one task are held out together."""
    instruction: str = ""
    website: str = ""
    domain: str = ""
    subdomain: str = ""
    difficulty: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer and what came before it."""

    number: int
    """From 0."""
    context: Sequence[Message]
    """Everything before the answer."""
    answer: Message
    seen: Screenshot | None
    """The screenshot that came since the last answer."""
    shown: tuple[int, ...]
    """Turns whose screenshots stand in the context, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, object], ...] = ()
    """As chat templates take them."""
    about: About = About()

    def turns(self) -> Iterator[Turn]:
        """Every answer in order.

        Raises:
            BadRecord: there is none, or one was asked with several screenshots at once: an observation has one.
        """
        seen: Screenshot | None = None
        shown: list[int] = []
        number = 0
        for place, message in enumerate(self.messages):
            if message.role != "assistant":
                for screenshot in message.screenshots:
                    if seen is not None:
                        raise BadRecord(f"answer {number + 1} follows several screenshots, and one is seen at a time")
                    seen = screenshot
                    shown.append(number)
                continue
            if message.screenshots:
                raise BadRecord(f"answer {number + 1} holds an image, and answers are text")
            yield Turn(number=number, context=self.messages[:place], answer=message, seen=seen, shown=tuple(shown))
            number += 1
            seen = None
        if number == 0:
            raise BadRecord("it has no message of an assistant, so there is nothing to imitate")
