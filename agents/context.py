"""The context window: task, history and the current observation become the messages that the model reads.

    system      the prompt version's text, with the action space's tool
    user        the task; steps that are no turns any more, one line each; a screenshot
    assistant   its answer
    user        what that did; the page; a screenshot, if the round is one of the latest
    ...
    user        what the last actions did; the page; what the browser says of it in text; the current screenshot

A pure function of chain and configuration, so that any worker that reads the same chain builds the same prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.action_space import ActionSpace
from agents.answer_forms import answer_form
from agents.describing import describe, describe_all
from agents.earlier_answers import kept_of
from agents.engine import ChatMessage
from agents.page_text import current_page, read_text
from agents.plain_text import plain, short
from agents.prompts import system_prompt
from schemas.context_config import ContextConfig
from schemas.messages import ActionEffect, ActionResult, Observation, Screenshot, StepRequest, Task
from schemas.model_config import ModelConfig

_MAX_LINE = 160
_MAX_URL = 200
_MAX_ERROR = 300
_MAX_CHANGES = 6


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
    """The windows for one observation: the whole one, and those that show less of the oldest rounds."""

    task: Task
    history: Sequence[Round]
    current: Observation
    context: ContextConfig
    model: ModelConfig

    def without(self, num_dropped: int) -> Window:
        """One after the other, the oldest screenshots are left out, then the oldest turns: a line is left of each."""
        return build_window(
            self.task, self.history, self.current, context=self.context, model=self.model, num_dropped=num_dropped
        )

    def asked_with(self, answer: StepRequest) -> Window:
        """The window that was answered so; the whole one for an answer that names no screenshots, or more."""
        fewer = self._num_shown + 1 - len(answer.screenshots) if answer.screenshots else 0
        return self.without(max(0, fewer, answer.num_dropped))

    def shortened(self, num_dropped: int) -> tuple[ChatMessage, ...] | None:
        """The messages of such a window; None when there is not so much to leave out."""
        most = self._num_shown + (len(self.history) if self.context.keeps_turns else 0)
        return self.without(num_dropped).messages if num_dropped <= most else None

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
    num_dropped: int = 0,
) -> Window:
    """The messages for answering `current`, which follows the rounds of `history` (all of them, oldest first).

    Args:
        num_dropped: screenshots, and behind those turns, that are left out although the configuration has room for them.
    """
    num_shown = min(context.num_rounds, len(history))
    first_shown = len(history) - max(0, num_shown - num_dropped)
    first_turn = max(0, num_dropped - num_shown) if context.keeps_turns else first_shown
    told = system_prompt(model.prompt_version, ActionSpace.of(context), model.prompt_text) + answer_form(context.answer_form)
    messages = [ChatMessage("system", (told,))]
    older = [] if context.history == "none" else history[:first_turn]
    opening = _opening(task, older, [*(round_.observation for round_ in history[1:]), current])
    for index, round_ in enumerate(history[first_turn:], start=first_turn):
        last = history[index - 1] if index else None
        seen = round_.observation
        lines = _lines(opening, seen, last, read_text(seen, earlier=True))
        messages.append(_user(lines, seen.screenshot if index >= first_shown else None))
        messages.append(ChatMessage("assistant", (plain(kept_of(round_.step.response, context, model)),)))
        opening = ""
    lines = _lines(opening, current, history[-1] if history else None, current_page(current, context))
    messages.append(_user(lines, current.screenshot))
    shown = (*(round_.observation.step for round_ in history[first_shown:]), current.step)
    return Window(messages=tuple(messages), screenshots=shown)


def _opening(task: Task, older: Sequence[Round], following: Sequence[Observation]) -> str:
    """The task, and a line for every step whose screenshot is no longer shown."""
    lines = [f"Task: {plain(task.instruction)}"]
    if older:
        lines.append("Earlier steps:")
    for number, (round_, after) in enumerate(zip(older, following, strict=False), start=1):
        done = round_.step.thought or describe_all(round_.step.actions)
        said = plain(short(done, _MAX_LINE)) if round_.step.parsed else "no readable action"
        lines.append(f"{number}. {said} | {plain(short(round_.observation.title, _MAX_LINE))} | {_effect(after)}")
    return "\n".join(lines)


def _lines(opening: str, observation: Observation, last: Round | None, page: Sequence[str]) -> list[str]:
    lines = [opening] if opening else []
    if last is not None:
        lines += _results(observation, last.step)
        title, url = short(observation.title, _MAX_LINE), short(observation.url, _MAX_URL)
        lines.append(plain(f"Page: {title} ({url})"))
    return [*lines, *page]


def _user(lines: Sequence[str], screenshot: Screenshot | None) -> ChatMessage:
    parts: tuple[str | Screenshot, ...] = ("\n".join(lines) + "\n",) if lines else ()
    return ChatMessage("user", parts if screenshot is None else (*parts, screenshot))


def _results(observation: Observation, step: StepRequest) -> list[str]:
    """What the answer's actions did: one line, or where it had several, a line more for each that was carried out."""
    of_last = ActionResult(error=observation.error, hit=observation.hit, changes=observation.changes)
    if not step.further:
        lines = [f"Result: {_effect(observation) if step.parsed else _UNREADABLE}{_said(of_last)}"]
    else:
        results = (*observation.earlier_results, of_last)
        each = zip(step.actions, results, strict=False)
        lines = [f"Result: {_effect(observation)}"]
        lines += [
            f"{number}. {plain(short(describe(action), _MAX_LINE))}{_said(result)}"
            for number, (action, result) in enumerate(each, 1)
        ]
    return lines + ([f"{step.num_left_out} more calls were left out"] if step.num_left_out else [])


_UNREADABLE = "your output held no readable action, so nothing was done"


def _said(result: ActionResult) -> str:
    """What the action's input reached and changed, and what went wrong."""
    witnessed = _witnessed(result)
    error = f" ({plain(short(result.error, _MAX_ERROR))})" if result.error else ""
    return (f": {witnessed}" if witnessed else "") + error


def _witnessed(result: ActionResult) -> str:
    hit = [f"hit {short(result.hit, _MAX_LINE)}"] if result.hit else []
    changes = [short(change, _MAX_LINE) for change in result.changes[:_MAX_CHANGES]]
    num_more = len(result.changes) - len(changes)
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
