"""What of a set-of-marks prompt, and of the answers to it, is the same everywhere: one token each for a tiny model."""

import re
from collections.abc import Iterator

from tokenizers import Tokenizer

from agents.action_space import ActionSpace
from agents.describing import sentence
from agents.prompts import system_prompt
from agents.rendering import render_action
from ops.quickstart.tiny_model import END_OF_TURN, START_OF_TURN, VISION_TOKENS
from schemas.messages import Action, ActionKind, Element
from schemas.model_config import ModelConfig

NUM_LINES = 130
"""Elements, from 1 on, whose numbers are read as one token."""
_TAGS = (
    *(f"input[type={kind}]" for kind in ("checkbox", "date", "password", "radio", "text")),
    *("div[role=dialog]", "h3[role=tab]", "p[role=tab]", "ul[role=tablist]"),
)
_WORDS = (
    "a all altered and button changed changes checkbox checked chosen click clickable date div element elements "
    "field filled focus hit holds in input into it label li link list look menu more moved no nothing now of option "
    "or p page password picture radio scrolled select selected shows span state tab text textarea the to type "
    "unchecked was were with"
)
_ORDINALS = "1st 2nd 3rd 4th 5th 6th 7th 8th 9th"
WORDS = (*_WORDS.split(" "), *_ORDINALS.split(" "))
"""Of elements, of what a browser says that an action did, and of places in an order."""
_PROMPT = (
    *("system\n", "user\n", "assistant\n", "Task: ", "Earlier steps:\n", "Elements:\n", "Elements: none\n"),
    *(' "', '"\n', ' (checked)"\n'),
    *("no readable action", "the page changed", "the page did not change", "Result: ", "Page: ", "; ", ")\n"),
    *("Result: the page changed: hit ", "Result: the page did not change: hit ", "field now holds"),
    *(" element was altered in look or state", " elements were altered in look or state", " elements were added"),
)
_PIECE = 2
"""Letters of what any string is spelled in."""
_TEXT, _LABEL, _TAG, _NUMBER = "TEXT", "LABEL", "TAG", 77


def line_number(number: int) -> str:
    """As it begins an element's line."""
    return f"[{number}] "


def marks_phrases(space: ActionSpace, model: ModelConfig) -> list[str]:
    """For the prompts and answers of such a model."""
    lines = [line_number(number) for number in range(1, NUM_LINES)]
    return [
        *_PROMPT,
        system_prompt(model.prompt_version, space, model.prompt_text),
        *lines,
        *_TAGS,
        *sorted(set(_answer_phrases(space, model))),
    ]


def _answer_phrases(space: ActionSpace, model: ModelConfig) -> Iterator[str]:
    """What stands between the words and numbers of an answer."""
    variable = re.compile(f"{_TEXT}|{_LABEL}|{_TAG}|(?<![0-9]){_NUMBER}(?![0-9])")
    for label in (_LABEL, ""):
        element = Element(id=_NUMBER, tag=_TAG, text=label, box=(0, 0, 1, 1))
        for kind in (ActionKind.CLICK, ActionKind.TYPE, ActionKind.SELECT):
            action = Action(kind=kind, element=_NUMBER, text="" if kind is ActionKind.CLICK else _TEXT)
            answer = render_action(action, thought=sentence(action, [element]), model=model, space=space)
            yield from (part for part in variable.split(answer) if part)


def line_number_tokens(tokenizer: Tokenizer) -> list[int]:
    """Tokens of `line_number`, from 1 on."""
    return [token_id(tokenizer, line_number(number)) for number in range(1, NUM_LINES)]


def line_end_tokens(tokenizer: Tokenizer) -> list[int]:
    """Tokens behind which no element's line goes on."""
    return [token_id(tokenizer, token) for token in (START_OF_TURN, END_OF_TURN, VISION_TOKENS[0])]


def token_id(tokenizer: Tokenizer, token: str) -> int:
    """Raises `ValueError` where the string is no token of its own."""
    found: int | None = tokenizer.token_to_id(token)
    if found is None:
        raise ValueError(f"the tokenizer has no token {token!r}")
    return found


def token_forms(tokenizer: Tokenizer) -> list[str]:
    """By token: what it says, whatever stands around it; equal for `Okay` and ` okay`, for `[3] ` and `3`.

    Pieces of words keep their case: a password is spelled in them.
    """
    said = (tokenizer.decode([token], skip_special_tokens=False) for token in range(tokenizer.get_vocab_size()))
    bare = (text.strip(' "[]\n') for text in said)
    return [(text.lower() if len(text) > _PIECE else text) or f"token {token}" for token, text in enumerate(bare)]
