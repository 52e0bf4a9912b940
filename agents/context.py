"""The context window: task, history and the current observation become the messages that the model reads.

    system      the prompt version's text, with the action space's tool
    user        the task; steps older than the window, one line each; a screenshot
    assistant   its answer
    user        what that did; the page; a screenshot
    ...
    user        what the last action did; the page; what the browser says of it in text; the current screenshot

A pure function of chain and configuration, so that any worker that reads the same chain builds the same prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.action_space import ActionSpace
from agents.describing import describe
from agents.engine import ChatMessage
from agents.page_text import current_page, read_text
from agents.plain_text import plain, short
from agents.prompts import system_prompt
from schemas.context_config import ContextConfig
from schemas.messages import ActionEffect, Observation, Screenshot, StepRequest, Task
from schemas.model_config import ModelConfig

_MAX_LINE = 160
_MAX_URL = 200
_MAX_ERROR = 300
_MAX_CHANGES = 6
_OPENING, _CLOSING = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Round:
    """One answered observation. The screenshot of a round older than the window is not looked at."""

    observation: Observation
    step: StepRequest


@dataclass(frozen=True, slots=True)
class Window:
    """A prompt, and the steps whose screenshots it holds, in order."""

    messages: tuple[ChatMessage, ...]
    screenshots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows for one observation: the whole one, and those with some of the oldest rounds left out."""

    task: Task
    history: Sequence[Round]
    current: Observation
    context: ContextConfig
    model: ModelConfig

    def without(self, num_dropped: int) -> Window:
        """So many rounds fewer have a screenshot; like all older ones they keep their line."""
        fewer = replace(self.context, num_rounds=self._num_shown - num_dropped)
        return build_window(self.task, self.history, self.current, context=fewer, model=self.model)

    def asked_with(self, screenshots: Sequence[int]) -> Window:
        """The window with so many screenshots as an answer names; the whole one for an answer that names none, or more."""
        num_dropped = self._num_shown + 1 - len(screenshots) if screenshots else 0
        return self.without(max(0, num_dropped))

    def shortened(self, num_dropped: int) -> tuple[ChatMessage, ...] | None:
        """The messages of such a window; None when there are not so many rounds."""
        return self.without(num_dropped).messages if num_dropped <= self._num_shown else None

    @property
    def _num_shown(self) -> int:
        return min(self.context.num_rounds, len(self.history))


def build_window(
    task: Task,
    history: Sequence[Round],
    current: Observation,
    *,
    context: ContextConfig,
    model: ModelConfig,
) -> Window:
    """The messages for answering `current`, which follows the rounds of `history` (all of them, oldest first)."""
    first = max(0, len(history) - context.num_rounds)
    shown = history[first:]
    messages = [ChatMessage("system", (system_prompt(model.prompt_version, ActionSpace.of(context)),))]
    opening = _opening(task, history[:first], [*(round_.observation for round_ in history[1:]), current])
    for index, round_ in enumerate(shown, start=first):
        last = history[index - 1] if index else None
        messages.append(_user(opening, round_.observation, last, read_text(round_.observation, earlier=True)))
        said = round_.step.response
        kept = without_thinking(said) if model.model_type == "qwen3-think" else said
        messages.append(ChatMessage("assistant", (plain(kept),)))
        opening = ""
    messages.append(_user(opening, current, history[-1] if history else None, current_page(current, context)))
    return Window(messages=tuple(messages), screenshots=(*(round_.observation.step for round_ in shown), current.step))


def without_thinking(response: str) -> str:
    """Removes `<think>` blocks, also one whose opening tag stood in the prompt, or one that was never closed."""
    head, closed, rest = response.partition(_CLOSING)
    said, *blocks = (rest if closed and _OPENING not in head else response).split(_OPENING)
    return "".join((said, *(block.partition(_CLOSING)[2] for block in blocks))).strip()


def _opening(task: Task, older: Sequence[Round], following: Sequence[Observation]) -> str:
    """The task, and a line for every step whose screenshot is no longer shown."""
    lines = [f"Task: {plain(task.instruction)}"]
    if older:
        lines.append("Earlier steps:")
    for number, (round_, after) in enumerate(zip(older, following, strict=False), start=1):
        done = round_.step.thought or describe(round_.step.action)
        said = plain(short(done, _MAX_LINE)) if round_.step.parsed else "no readable action"
        lines.append(f"{number}. {said} | {plain(short(round_.observation.title, _MAX_LINE))} | {_effect(after)}")
    return "\n".join(lines)


def _user(opening: str, observation: Observation, last: Round | None, page: Sequence[str]) -> ChatMessage:
    lines = [opening] if opening else []
    if last is not None:
        lines.append(f"Result: {_result(observation, last.step)}")
        title, url = short(observation.title, _MAX_LINE), short(observation.url, _MAX_URL)
        lines.append(plain(f"Page: {title} ({url})"))
    lines += page
    parts: tuple[str | Screenshot, ...] = ("\n".join(lines) + "\n",) if lines else ()
    return ChatMessage("user", (*parts, observation.screenshot))


def _result(observation: Observation, step: StepRequest) -> str:
    sentence = _effect(observation)
    if not step.parsed:
        sentence = "your output held no readable action, so nothing was done"
    if said := _witnessed(observation):
        sentence += f": {said}"
    if observation.error:
        sentence += f" ({plain(short(observation.error, _MAX_ERROR))})"
    return sentence


def _witnessed(observation: Observation) -> str:
    """What the action's input reached, and what it changed."""
    hit = [f"hit {short(observation.hit, _MAX_LINE)}"] if observation.hit else []
    changes = [short(change, _MAX_LINE) for change in observation.changes[:_MAX_CHANGES]]
    num_more = len(observation.changes) - len(changes)
    return plain("; ".join([*hit, *changes, *([f"{num_more} more changes"] if num_more else [])]))


def _effect(observation: Observation) -> str:
    match observation.effect:
        case ActionEffect.CHANGED:
            return "the page changed"
        case ActionEffect.NAVIGATION_FAILED:
            return "the navigation failed"
        case ActionEffect.REFUSED:
            return "the action could not be carried out"
        case ActionEffect.UNCHANGED | ActionEffect.NONE:
            return "the page did not change"
