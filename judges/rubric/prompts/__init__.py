"""The rubric's questions as text files: a folder is one version of them."""

from importlib import resources
from pathlib import Path

from judges.prompt_files import Placeholders, Prompts, read_prompts

__all__ = ["PLACEHOLDERS", "Prompts", "committed_prompts", "load_prompts"]

PLACEHOLDERS: Placeholders = {
    "system": frozenset(),
    "task": frozenset({"opening", "closing", "instruction", "website", "difficulty"}),
    "answer": frozenset({"answer"}),
    "facts": frozenset({"facts"}),
    "screenshot": frozenset({"number", "count", "account"}),
    "blocking": frozenset(),
    "keypoint": frozenset(),
    "criterion_b": frozenset(),
    "criterion_a": frozenset({"fact", "group", "difficulty"}),
    "reference": frozenset({"reference"}),
}
_EXAMPLE = "judges/rubric/prompts/rubric_v1"


def committed_prompts(version: str) -> Prompts:
    """Those that are part of this package."""
    return read_prompts(resources.files(__name__).joinpath(version), PLACEHOLDERS, example=_EXAMPLE)


def load_prompts(folder: Path) -> Prompts:
    """Those of a folder.

    Raises:
        ConfigurationError: a file or a placeholder is missing, one is not known, or a file cannot be read.
    """
    return read_prompts(folder.resolve(), PLACEHOLDERS, example=_EXAMPLE)
