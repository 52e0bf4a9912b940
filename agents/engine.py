"""Defines the port of engines, which produce answers: vLLM in this process, a remote endpoint, or a scripted oracle."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self, runtime_checkable

from schemas.ids import PolicyVersion
from schemas.messages import Observation, Screenshot, TokenUsage, VersionSpan


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn: pieces of text and screenshots, in the order in which the model reads them."""

    role: Literal["system", "user", "assistant"]
    content: tuple[str | Screenshot, ...]


Shortened = Callable[[int], tuple[ChatMessage, ...] | None]
"""The messages with so many of the oldest rounds left out; None when there are not so many."""


def _nothing_to_leave_out(num_dropped: int) -> None:
    return None


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One answer to be generated. An engine whose model cannot read all of it answers a `shorter` one."""

    messages: tuple[ChatMessage, ...]
    observation: Observation
    """What is answered; only a scripted oracle looks at it, a model sees `messages` alone."""
    temperature: float = 1.0
    """Of sampling; 0: always the likeliest token."""
    num_dropped: int = 0
    """Rounds that `messages` leaves out."""
    shortened: Shortened = _nothing_to_leave_out

    def shorter(self, by: int = 1) -> "GenerationRequest | None":
        """The same with so many more of its oldest rounds left out; None when there are not so many."""
        messages = self.shortened(self.num_dropped + by)
        return None if messages is None else replace(self, messages=messages, num_dropped=self.num_dropped + by)

    @property
    def screenshots(self) -> tuple[Screenshot, ...]:
        """All screenshots, in the order of their placeholders in the prompt."""
        return tuple(part for message in self.messages for part in message.content if isinstance(part, Screenshot))


@dataclass(frozen=True, slots=True)
class Generation:
    """One completion, with everything that is needed to train on it. Token fields are empty where an endpoint hides them."""

    text: str
    """Without special tokens; whatever an endpoint spells, for whoever puts it into a record makes it valid."""
    finish_reason: str
    """stop or length."""
    prompt_tokens: tuple[int, ...] = ()
    """With one placeholder per image token, exactly as the model saw them."""
    completion_tokens: tuple[int, ...] = ()
    """With the end-of-turn token when the model ended the turn."""
    logprobs: tuple[float, ...] = ()
    """Natural logarithms, one a completion token, of the distribution that was sampled from."""
    versions: tuple[VersionSpan, ...] = ()
    temperature: float = 1.0
    num_dropped: int = 0
    """Rounds that were left out of the request's front, so that prompt and answer fit."""
    usage: TokenUsage | None = None
    """Of an endpoint that hides its tokens and counts them."""


class Engine(AbstractAsyncContextManager["Engine"], Protocol):
    """Produces completions while its context is open. Many requests may be in flight at once."""

    @property
    def version(self) -> PolicyVersion:
        """The weights that new tokens are sampled from."""
        ...

    @property
    def takes_weights(self) -> bool:
        """Whether `load` does anything: only then are announced checkpoints followed."""
        ...

    async def __aenter__(self) -> Self: ...

    async def generate(self, request: GenerationRequest) -> Generation:
        """Answers one request; cancelling it frees what it holds.

        Raises:
            PolicyError: this request could not be answered; another attempt may succeed.
            PromptTooLong: it does not fit, all earlier rounds left out.
            PromptRefused: it is not taken, whoever asks.
            EngineFailed: nothing can be answered any more.
        """
        ...

    async def load(self, folder: Path, version: PolicyVersion) -> None:
        """Replaces the weights by those of a checkpoint folder, in place. Requests in flight go on under the new weights.

        Raises:
            CheckpointCorrupt, PolicyError: this folder cannot be loaded; what was served before still is.
            EngineFailed: the weights could not be loaded; the engine's state is unknown.
        """
        ...


@runtime_checkable
class Measured(Protocol):
    """An engine that can say how full it is."""

    def gauges(self) -> dict[str, float]:
        """For the worker's heartbeat; cheap, and safe to call at any time."""
        ...


class Weightless:
    """The part of an `Engine` that has no weights of its own."""

    takes_weights = False
    version = PolicyVersion(0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def load(self, folder: Path, version: PolicyVersion) -> None:
        raise AssertionError("there are no weights to replace")
