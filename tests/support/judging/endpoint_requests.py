"""A chat completion request, read as a scripted endpoint reads it."""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

SCREENSHOT_TOKENS = 258
TOKEN_CHARACTERS = 4
_BLOCK_CHARACTERS = 16 * TOKEN_CHARACTERS
"""Beginnings are compared by blocks of so many characters."""


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: tuple[str | bytes, ...]
    """Texts, and screenshots decoded, in order."""

    @property
    def text(self) -> str:
        return "".join(part for part in self.content if isinstance(part, str))

    @property
    def screenshots(self) -> tuple[bytes, ...]:
        return tuple(part for part in self.content if isinstance(part, bytes))


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as the script sees it."""

    index: int
    """Requests that arrived before this one."""
    path: str
    headers: Mapping[str, str]
    """By lower-case name."""
    body: Mapping[str, Any]
    """As it was sent."""
    messages: tuple[Message, ...]

    @property
    def key(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def text(self) -> str:
        """Of all messages, in order."""
        return "\n".join(message.text for message in self.messages)

    @property
    def screenshots(self) -> tuple[bytes, ...]:
        return tuple(screenshot for message in self.messages for screenshot in message.screenshots)

    @property
    def form(self) -> str:
        """`json_schema`, `json_object`, or empty."""
        return str((self.body.get("response_format") or {}).get("type", ""))

    @property
    def digest(self) -> str:
        """The same for the same question to the same model, in whatever form the answer is wanted."""
        return hashlib.sha256(json.dumps([self.model, self.body["messages"]]).encode()).hexdigest()[:16]


def read_request(index: int, path: str, headers: Mapping[str, str], payload: bytes) -> Asked:
    body = json.loads(payload)
    messages = (Message(message["role"], tuple(_content(message["content"]))) for message in body["messages"])
    return Asked(index, path, headers, body, tuple(messages))


def _content(content: str | list[dict[str, Any]]) -> Iterator[str | bytes]:
    if isinstance(content, str):
        yield content
        return
    for part in content:
        if part["type"] == "text":
            yield part["text"]
        else:
            yield base64.b64decode(part["image_url"]["url"].partition(";base64,")[2], validate=True)


class PrefixCache:
    """Counts tokens as a provider that caches beginnings does: four characters each, and 258 for a screenshot."""

    def __init__(self) -> None:
        self._known: dict[str, set[int]] = {}

    def usage(self, asked: Asked) -> Usage:
        """Cached are the tokens of the longest beginning that an earlier request to the model had too."""
        known = self._known.setdefault(asked.model, set())
        prompt = cached = beginning = 0
        for block, num_tokens in _blocks(asked.messages):
            beginning = hash((beginning, block))
            prompt += num_tokens
            if beginning in known:
                cached = prompt
            known.add(beginning)
        return Usage(prompt, cached)


def num_tokens(text: str) -> int:
    return -(-len(text) // TOKEN_CHARACTERS)


def _blocks(messages: tuple[Message, ...]) -> Iterator[tuple[str | bytes, int]]:
    for message in messages:
        yield message.role, 1
        for part in message.content:
            if isinstance(part, bytes):
                yield part, SCREENSHOT_TOKENS
                continue
            for start in range(0, len(part), _BLOCK_CHARACTERS):
                block = part[start : start + _BLOCK_CHARACTERS]
                yield block, num_tokens(block)
