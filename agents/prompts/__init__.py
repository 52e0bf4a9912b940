"""System prompts, one a file: what the model is told, and the form in which it answers.

A prompt is made without arguments:

    @prompt("terse")
    class Terse:
        def system(self, tool: Tool) -> str:
            return f"You drive a browser. Answer with one call of {tool.definition}, as in {tool.example}"

        def response(self, thought: str, call: str) -> str:
            return f"<tool_call>{call}</tool_call>"
"""

from collections.abc import Callable
from functools import cache
from importlib import resources
from string import Template
from typing import Protocol, TypeVar

from agents.action_space import ActionSpace
from agents.tool import Tool
from schemas.extensions import PROMPTS

_STANDARD = ActionSpace()


class Prompt(Protocol):
    """Both sides of one form of answer."""

    def system(self, tool: Tool) -> str:
        """The system message for a run whose actions are the tool's."""
        ...

    def response(self, thought: str, call: str) -> str:
        """What a demonstration answers: a sentence that says what is done, and the call, which is JSON on one line."""
        ...


_Class = TypeVar("_Class", bound=Callable[[], Prompt])


def prompt(name: str) -> Callable[[_Class], _Class]:
    """Declares a prompt, for `model_config.prompt_version`."""
    return lambda made: PROMPTS.declare(name, made, None)


@cache
def prompt_of(version: str) -> Prompt:
    """Raises `ConfigurationError` where there is no such prompt."""
    made: Prompt = PROMPTS.find(version).made()
    return made


@cache
def system_prompt(version: str, space: ActionSpace = _STANDARD) -> str:
    """The system message of a prompt version."""
    return prompt_of(version).system(space.tool)


def filled(file: str, tool: Tool) -> str:
    """A text file of this folder with the tool put in, without a newline at its end."""
    text = resources.files(__name__).joinpath(file).read_text(encoding="utf-8").rstrip("\n")
    return Template(text).substitute(definition=tool.definition, example=tool.example)
