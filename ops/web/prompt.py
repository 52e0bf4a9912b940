"""The prompt of one step, built again from the chain as the policy worker built it. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agents.context import Round, Windows
from agents.engine import ChatMessage
from ops.archive.episodes import IMPORTED
from ops.web.detail import Chain
from ops.web.token_text import TokenTexts
from schemas.context_config import ContextConfig
from schemas.errors import RecordGone
from schemas.messages import Screenshot, StepRequest
from schemas.model_config import ModelConfig

_NUMBERS = TokenTexts()
"""Tokens without texts."""


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


def prompt_of(chain: Chain, number: int, context: ContextConfig, model: ModelConfig, texts: TokenTexts = _NUMBERS) -> Prompt:
    """Raises `RecordGone` when a record that it needs is not there."""
    if number in chain.answers and chain.answers[number][0].worker == IMPORTED:
        return _imported(chain.answers[number][0], texts)
    rounds = []
    for step in range(number):
        if step not in chain.observations or step not in chain.answers:
            raise RecordGone(f"The prompt cannot be built again: step {step + 1} is no longer kept.")
        rounds.append(Round(chain.observations[step][0], chain.answers[step][0]))
    if number not in chain.observations:
        raise RecordGone("The prompt cannot be built again: what was seen at this step is no longer kept.")
    windows = Windows(chain.trajectory.task, rounds, chain.observations[number][0], context, model)
    answer = chain.answers[number][0] if number in chain.answers else None
    asked = answer.screenshots if answer else ()
    window = windows.asked_with(answer) if answer else windows.without(0)
    differs = bool(asked) and asked != window.screenshots
    steps = iter(window.screenshots)
    return Prompt(
        messages=tuple(_message(message, steps) for message in window.messages),
        screenshots=asked or window.screenshots,
        remark=_DIFFERS if differs else "",
    )


def _imported(answer: StepRequest, texts: TokenTexts) -> Prompt:
    """Of other people's conversation, which this run did not build: its tokens, spelt out."""
    text = _REPEATED.sub(r"\1", "".join(texts.of(answer.prompt_tokens)))
    return Prompt(
        messages=(PromptMessage("imported", (PromptPart(text=text),)),) if text else (),
        screenshots=answer.screenshots,
        remark=_IMPORTED if text else _NO_TEXT,
    )


_REPEATED = re.compile(r"(<[^<>\s]{1,40}>)\1+")
"""Image tokens: as many as the model sees, shown as one."""
_IMPORTED = "Imported: this is the prompt that is learnt, from its tokens; a screenshot's tokens are shown as one."
_NO_TEXT = "Imported: the prompt has no text here, since the model's tokenizer is not on this machine."
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
