"""Defines the port of judges' models. `judges.endpoint.openai_endpoint` provides it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from schemas.errors import NoVerdict
from schemas.messages import Screenshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request. What several questions share comes first, so that providers need not read it again."""

    system: str
    content: tuple[str | Screenshot, ...]
    """Of the user's message, in order."""
    schema_name: str
    schema: Mapping[str, object]
    """JSON schema of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model said, whatever it is worth."""

    text: str
    """Empty when the endpoint's filter kept the answer back."""
    finish_reason: str
    """stop, length, content_filter."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    num_failures: int = 0
    """Requests that got no answer before this one."""
    seconds: float = 0.0
    """Of the request that was answered."""
    temperature: float | None = None
    """As it was sent; None: the endpoint's own."""


class Unanswered(NoVerdict):
    """A question came to no answer: none within the endpoint's patience, or it is refused."""

    def __init__(self, reason: str, num_failures: int) -> None:
        super().__init__(reason)
        self.num_failures = num_failures
        """Requests that were made for it."""


class Endpoint(Protocol):
    """One model behind one address."""

    @property
    def model(self) -> str: ...

    async def ask(self, question: Question, *, max_completion_tokens: int) -> Answer:
        """Waits its turn, honours the provider's limits, and repeats what may yet succeed.

        Raises:
            Unanswered: no answer within the endpoint's patience, or it refuses this question.
            ConfigurationError: it refuses the key, or does not know the model or the path.
        """
        ...
