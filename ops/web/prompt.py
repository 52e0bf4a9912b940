"""The prompt of one step, built again from the chain as the policy worker built it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from agents.context import Round, Windows
from agents.engine import ChatMessage
from ops.web.detail import Chain
from schemas.context_config import ContextConfig
from schemas.errors import RecordGone
from schemas.messages import Screenshot
from schemas.model_config import ModelConfig


@dataclass(frozen=True, slots=True)
class PromptPart:
    """Text, or the screenshot of a step."""

    text: str = ""
    screenshot: int | None = None


@dataclass(frozen=True, slots=True)
class PromptMessage:
    role: str
    parts: tuple[PromptPart, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    messages: tuple[PromptMessage, ...]
    screenshots: tuple[int, ...]
    """Steps whose screenshots it holds, in order."""
    remark: str
    """Empty, or why it may not be what was asked."""


def prompt_of(chain: Chain, number: int, context: ContextConfig, model: ModelConfig) -> Prompt:
    """Raises `RecordGone` when a record that it needs is not there."""
    rounds = []
    for step in range(number):
        if step not in chain.observations or step not in chain.answers:
            raise RecordGone(f"The prompt cannot be built again: step {step + 1} is no longer kept.")
        rounds.append(Round(chain.observations[step][0], chain.answers[step][0]))
    if number not in chain.observations:
        raise RecordGone("The prompt cannot be built again: what was seen at this step is no longer kept.")
    windows = Windows(chain.trajectory.task, rounds, chain.observations[number][0], context, model)
    asked = chain.answers[number][0].screenshots if number in chain.answers else ()
    window = windows.asked_with(asked)
    differs = bool(asked) and asked != window.screenshots
    steps = iter(window.screenshots)
    return Prompt(
        messages=tuple(_message(message, steps) for message in window.messages),
        screenshots=asked or window.screenshots,
        remark=_DIFFERS if differs else "",
    )


_DIFFERS = (
    "The stored configuration shows other screenshots than this answer was asked with: the prompt was not quite this one."
)


def _message(message: ChatMessage, steps: Iterator[int]) -> PromptMessage:
    return PromptMessage(
        message.role,
        tuple(
            PromptPart(screenshot=next(steps)) if isinstance(part, Screenshot) else PromptPart(text=part)
            for part in message.content
        ),
    )
