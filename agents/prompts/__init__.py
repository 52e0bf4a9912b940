"""System prompts, one a file: what the model is told, and the form in which it answers.

A prompt is made without arguments:

    @prompt("terse")
    class Terse:
        def system(self, tool: Tool) -> str:
            return f"You drive a browser. Answer with one call of {tool.definition}, as in {tool.example}"

        def response(self, thought: str, calls: Sequence[ToolCall]) -> str:
            return "".join(f"<tool_call>{call.json}</tool_call>" for call in calls)
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from string import Template
from typing import Protocol, TypeVar

from agents.action_space import ActionSpace
from agents.prompt_file import PromptFile, is_prompt_file
from agents.tool import Tool, ToolCall
from schemas.extensions import PROMPTS

_STANDARD = ActionSpace()


class Prompt(Protocol):
    """Both sides of one form of answer."""

    def system(self, tool: Tool) -> str:
        """The system message for a run whose actions are the tool's."""
        ...

    def response(self, thought: str, calls: Sequence[ToolCall]) -> str:
        """What a demonstration answers: a sentence that says what is done, and the calls that do it, mostly one."""
        ...


_Class = TypeVar("_Class", bound=Callable[[], Prompt])


def prompt(name: str) -> Callable[[_Class], _Class]:
    """Declares a prompt, for `model_config.prompt_version`."""
    return lambda made: PROMPTS.declare(name, made, None)


@cache
def prompt_of(version: str, text: str = "") -> Prompt:
    """`text`: of a prompt file (`ModelConfig.prompt_text`). Raises `ConfigurationError` where there is no such prompt."""
    made: Prompt = PromptFile(version, text) if is_prompt_file(version) else PROMPTS.find(version).made()
    return made


@cache
def system_prompt(version: str, space: ActionSpace = _STANDARD, text: str = "") -> str:
    """The system message of a prompt version. `text`: of a prompt file."""
    return prompt_of(version, text).system(space.tool)


def filled(file: str, tool: Tool, example: str = "") -> str:
    """A text file of this folder with the tool put in, without a newline at its end. `example`: in place of the tool's."""
    text = resources.files(__name__).joinpath(file).read_text(encoding="utf-8").rstrip("\n")
    return Template(text).substitute(definition=tool.definition, example=example or tool.example)


def in_tags(calls: Sequence[str]) -> str:
    """Calls as Qwen's models make them, one behind the other."""
    return "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in calls)
