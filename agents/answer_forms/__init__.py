"""Forms of final answers that a benchmark asks for, one a text file: what stands behind a prompt's own words."""

from functools import cache
from importlib import resources


@cache
def answer_form(name: str) -> str:
    """What the system message ends with; empty for `text`."""
    if name == "text":
        return ""
    return "\n\n" + resources.files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")
