"""System prompts from the text files beside the code: one for each `model_config.prompt_version`, with the tool of the run's
action space put in."""

from functools import cache
from importlib import resources
from string import Template

from agents.action_space import ActionSpace

_STANDARD = ActionSpace()


@cache
def system_prompt(version: str, space: ActionSpace = _STANDARD) -> str:
    """The system message of a prompt version, without a newline at its end."""
    text = resources.files(__name__).joinpath(f"{version}.txt").read_text(encoding="utf-8").rstrip("\n")
    return Template(text).substitute(definition=space.tool.definition, example=space.tool.example)
