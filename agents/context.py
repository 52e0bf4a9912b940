"""The context window: task, history and the current observation become the messages that the model reads.

    system      the prompt version's text
    user        the task; steps older than the window, one line each; a picture
    assistant   its answer
    user        what that did; the page; a picture
    ...
    user        what the last action did; the page; the current picture

A pure function, so that any worker that reads the same chain builds the same prompt. Text that comes from outside (pages,
tasks, earlier answers) can never spell one of the model's control tokens.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agents.engine import ChatMessage
from agents.prompts import system_prompt
from schemas.config import ContextConfig, ModelConfig
from schemas.messages import Action, ActionEffect, ActionKind, Observation, Picture, StepRequest, Task

_MAX_LINE = 160
_MAX_URL = 200
_MAX_ERROR = 300
_THOUGHT_BLOCK = re.compile(r"\A(?:(?!<think>).)*?</think>|<think>.*?(?:</think>|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Round:
    """One answered observation. The picture of a round older than the window is not looked at."""

    observation: Observation
    step: StepRequest


@dataclass(frozen=True, slots=True)
class Window:
    """A prompt, and the steps whose pictures it holds, in order."""

    messages: tuple[ChatMessage, ...]
    pictures: tuple[int, ...]


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
    messages = [ChatMessage("system", (system_prompt(model.prompt_version),))]
    opening = _opening(task, history[:first], [*(round_.observation for round_ in history[1:]), current])
    for index, round_ in enumerate(shown, start=first):
        messages.append(_user(opening, round_.observation, history[index - 1] if index else None))
        messages.append(ChatMessage("assistant", (plain(without_thinking(round_.step.response)),)))
        opening = ""
    messages.append(_user(opening, current, history[-1] if history else None))
    return Window(messages=tuple(messages), pictures=(*(round_.observation.step for round_ in shown), current.step))


def without_thinking(response: str) -> str:
    """Removes `<think>` blocks, also one whose opening tag stood in the prompt, or one that was never closed."""
    return _THOUGHT_BLOCK.sub("", response).strip()


def plain(text: str) -> str:
    """Text that no tokenizer reads as control tokens such as `<|im_end|>`."""
    return text.replace("<|", "< |")


def describe(action: Action) -> str:
    """One short phrase for an action that came without one of its own."""
    match action.kind:
        case ActionKind.CLICK | ActionKind.HOVER:
            return f"{action.kind.value} {_place(action)}".strip()
        case ActionKind.TYPE:
            return f"type {action.text!r} {_place(action)}".strip()
        case ActionKind.SCROLL:
            return f"scroll {action.direction}"
        case ActionKind.NAVIGATE | ActionKind.ANSWER:
            return f"{action.kind.value} {action.text}"
        case ActionKind.WAIT:
            return f"wait {action.seconds:g} s"
        case _:
            name: str = action.kind.value
            return name.replace("_", " ")


def _place(action: Action) -> str:
    return "" if action.point is None else f"at [{action.point[0]:g}, {action.point[1]:g}]"


def _opening(task: Task, older: Sequence[Round], following: Sequence[Observation]) -> str:
    """The task, and a line for every step whose picture is no longer shown."""
    lines = [f"Task: {plain(task.instruction)}"]
    if older:
        lines.append("Earlier steps:")
    for number, (round_, after) in enumerate(zip(older, following, strict=False), start=1):
        done = round_.step.thought or describe(round_.step.action)
        said = plain(_short(done, _MAX_LINE)) if round_.step.parsed else "no readable action"
        lines.append(f"{number}. {said} | {plain(_short(round_.observation.title, _MAX_LINE))} | {_effect(after)}")
    return "\n".join(lines)


def _user(opening: str, observation: Observation, last: Round | None) -> ChatMessage:
    lines = [opening] if opening else []
    if last is not None:
        lines.append(f"Result: {_result(observation, last.step)}")
        title, url = _short(observation.title, _MAX_LINE), _short(observation.url, _MAX_URL)
        lines.append(plain(f"Page: {title} ({url})"))
    parts: tuple[str | Picture, ...] = ("\n".join(lines) + "\n",) if lines else ()
    return ChatMessage("user", (*parts, observation.picture))


def _result(observation: Observation, step: StepRequest) -> str:
    sentence = _effect(observation)
    if not step.parsed:
        sentence = "your output held no readable action, so nothing was done"
    if observation.error:
        sentence += f" ({plain(_short(observation.error, _MAX_ERROR))})"
    return sentence


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


def _short(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
