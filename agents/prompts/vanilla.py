"""The short prompt: Action, tool_call."""

from collections.abc import Sequence

from agents.prompts import filled, in_tags, prompt
from agents.tool import Tool, ToolCall


@prompt("vanilla")
class Vanilla:
    """For models that answer at once."""

    def system(self, tool: Tool) -> str:
        return filled("vanilla.txt", tool)

    def response(self, thought: str, calls: Sequence[ToolCall]) -> str:
        return f"Action: {thought}\n{in_tags([call.json for call in calls])}"
