"""The long prompt (WebGym): Memory, Progress, Intention, Action, tool_call."""

from collections.abc import Sequence

from agents.prompts import filled, in_tags, prompt
from agents.tool import Tool, ToolCall


@prompt("complete")
class Complete:
    """What the model wants to remember stands in its own answers."""

    def system(self, tool: Tool) -> str:
        return filled("complete.txt", tool)

    def response(self, thought: str, calls: Sequence[ToolCall]) -> str:
        """Memory and Progress are empty, and the thought is the Intention too."""
        head = f'Memory: {{}}\nProgress: {{"done": [], "left": []}}\nIntention: {thought}'
        return f"{head}\nAction: {thought}\n{in_tags([call.json for call in calls])}"
