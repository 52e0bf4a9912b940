"""Describes each step beside its screenshot: where the browser was, and the action that led there.

Everything here comes from pages and policies and is quoted as untrusted text.
"""

from collections.abc import Iterator, Sequence

from judges.rubric.untrusted import cleaned, on_one_line, shortened
from schemas.messages import Action, ActionEffect, ActionKind, Observation, StepRequest

_ADDRESS_LIMIT = 500
_TITLE_LIMIT = 300
_TEXT_LIMIT = 600
"""Characters of a text that was typed, of an address that was opened, of what an input reached."""
_PAGE_TEXT_LIMIT = 8_000
_ACCOUNT_LIMIT = 24_000
"""Of all that is told of one screenshot, at however many steps it was seen."""
_OUTCOMES = {
    ActionEffect.NAVIGATION_FAILED: " (the page could not be opened)",
    ActionEffect.REFUSED: " (it could not be carried out)",
}


def account(observations: Sequence[Observation], steps: Sequence[StepRequest]) -> tuple[str, ...]:
    """What is told of each observation, a few lines each."""
    before = (None, *steps)
    return tuple(
        "\n".join(_lines(observation, before[index] if index < len(before) else None))
        for index, observation in enumerate(observations)
    )


def untrusted_texts(observations: Sequence[Observation], steps: Sequence[StepRequest]) -> Iterator[str]:
    """Everything that pages and the policy wrote, as they wrote it."""
    for observation in observations:
        yield from (observation.url, observation.title, observation.error, observation.hit, observation.page_text)
        yield from (observation.accessibility_tree, *observation.changes, *observation.page_errors)
        for result in observation.earlier_results:
            yield from (result.error, result.hit, *result.changes)
        yield from (element.text for element in observation.elements)
    for step in steps:
        yield from (*(action.text for action in step.actions), step.thought, step.response)


def told_once(parts: Sequence[str]) -> str:
    """Of several steps with one screenshot: a line that is as in the step before is not told again, and of a long account its
    end is told.
    """
    lines = [part.split("\n") for part in parts]
    known = (frozenset(part) for part in lines)
    later = ([line for line in after if line not in before] for before, after in zip(known, lines[1:], strict=False))
    told = "\n".join(line for part in (*lines[:1], *later) for line in part)
    left_out = len(told) - _ACCOUNT_LIMIT
    return told if left_out <= 0 else f"[{left_out} characters of earlier steps are left out]\n{told[left_out:]}"


def _lines(observation: Observation, before: StepRequest | None) -> Iterator[str]:
    yield f"step {observation.step}, {_led_here(observation, before)}"
    yield f"address: {on_one_line(observation.url, _ADDRESS_LIMIT)}"
    yield f"title: {on_one_line(observation.title, _TITLE_LIMIT)}"
    if observation.page_text:
        yield "text that the browser read from the page:"
        for line in shortened(cleaned(observation.page_text), _PAGE_TEXT_LIMIT).split("\n"):
            yield f"    {line}"


def _led_here(observation: Observation, before: StepRequest | None) -> str:
    if before is None:
        return "the page that the episode began with"
    if not before.parsed:
        return "after no action: what the agent wrote could not be read"
    reached = f", which reached {on_one_line(observation.hit, _TEXT_LIMIT)}" if observation.hit else ""
    done = ", then ".join(map(describe, before.actions))
    return f"after the action: {done}{reached}{_OUTCOMES.get(observation.effect, '')}"


def describe(action: Action) -> str:
    """One line; points are on a grid of 1000 by 1000 over the screenshot."""
    words = (action.kind.value.replace("_", " "), *_arguments(action), _place("at", action.point, action.element))
    return " ".join(word for word in (*words, _place("to", action.end_point, action.end_element)) if word)


def _arguments(action: Action) -> tuple[str, ...]:
    words: tuple[str, ...]
    match action.kind:
        case ActionKind.TYPE:
            words = (_quoted(action.text), "and Enter" if action.enter else "")
        case ActionKind.SELECT | ActionKind.NAVIGATE | ActionKind.NEW_TAB | ActionKind.ANSWER:
            words = (_quoted(action.text),)
        case ActionKind.PRESS:
            words = tuple(on_one_line(chord, _TEXT_LIMIT) for chord in action.keys)
        case ActionKind.SCROLL:
            words = (on_one_line(action.direction, _TEXT_LIMIT),)
        case ActionKind.SWITCH_TAB | ActionKind.CLOSE_TAB:
            words = () if action.tab is None else (str(action.tab),)
        case ActionKind.WAIT:
            words = (f"{action.seconds:g} s",)
        case _:
            words = ()
    return words


def _quoted(text: str) -> str:
    return f'"{on_one_line(text, _TEXT_LIMIT)}"' if text else ""


def _place(preposition: str, point: tuple[float, float] | None, element: int | None) -> str:
    if element is not None:
        return f"{preposition} element {element}"
    return "" if point is None else f"{preposition} ({point[0]:g}, {point[1]:g})"
