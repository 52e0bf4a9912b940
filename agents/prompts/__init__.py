"""System prompts, as text files beside the code: one for each `model_config.prompt_version`."""

from functools import cache
from importlib import resources


@cache
def system_prompt(version: str) -> str:
    """The system message of a prompt version, without a newline at its end."""
    return resources.files(__name__).joinpath(f"{version}.txt").read_text(encoding="utf-8").rstrip("\n")
