"""The short prompt: Action, tool_call."""

from agents.prompts import filled, prompt
from agents.tool import Tool


@prompt("vanilla")
class Vanilla:
    """For models that answer at once."""

    def system(self, tool: Tool) -> str:
        return filled("vanilla.txt", tool)

    def response(self, thought: str, call: str) -> str:
        return f"Action: {thought}\n<tool_call>\n{call}\n</tool_call>"
