"""A system prompt from a text file of one's own: `model_config.prompt_version: ./mine.txt`.

`$definition` stands for the tool, `$example` for a call of it. Demonstrations answer with a line `Action: ...` and the call.
The file is read once, where a configuration is loaded, and its text is a part of that from then on.
"""

from collections.abc import Sequence
from pathlib import Path
from string import Template

from agents.tool import Tool, ToolCall
from schemas.errors import ConfigurationError

_SUFFIX = ".txt"
_PLACEHOLDERS = frozenset({"definition", "example"})


def is_prompt_file(version: str) -> bool:
    return version.endswith(_SUFFIX)


def read_prompt_file(version: str, folder: Path) -> str:
    """The text of a prompt file, whose path is relative to `folder`. Raises `ConfigurationError`."""
    try:
        text = (folder / version).read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{_where(version)} cannot be read: {error}; write the path of a text file in UTF-8"
        ) from error
    PromptFile(version, text)
    return text


def _where(version: str) -> str:
    return f"model_config.prompt_version: {version}"


class PromptFile:
    """Satisfies `agents.prompts.Prompt`.

    Raises:
        ConfigurationError: the text does not say where the tool goes, or has another placeholder.
    """

    def __init__(self, version: str, text: str) -> None:
        where = _where(version)
        self._template = Template(text)
        if not self._template.is_valid():
            raise ConfigurationError(f"{where} has a $ that begins no placeholder: write $$ for the character")
        found = set(self._template.get_identifiers())
        if "definition" not in found:
            raise ConfigurationError(f"{where} does not say where the tool goes: write $definition there")
        if unknown := found - _PLACEHOLDERS:
            named = ", ".join(f"${name}" for name in sorted(unknown))
            raise ConfigurationError(f"{where} has {named}: nothing but $definition and $example is put in; write $$ for a $")

    def system(self, tool: Tool) -> str:
        return self._template.substitute(definition=tool.definition, example=tool.example)

    def response(self, thought: str, calls: Sequence[ToolCall]) -> str:
        said = "\n".join(f"<tool_call>\n{call.json}\n</tool_call>" for call in calls)
        return f"Action: {thought}\n{said}"
