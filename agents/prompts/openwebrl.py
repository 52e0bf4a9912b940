"""OpenWebRL's form of answer: thinking, then any number of calls, in JSON."""

from collections.abc import Sequence

from agents.prompts import filled, in_tags, prompt
from agents.tool import Tool, ToolCall


@prompt("openwebrl")
class OpenWebRL:
    """For its actions (`context_config.actions=openwebrl`), and for others."""

    def system(self, tool: Tool) -> str:
        return filled("openwebrl.txt", tool)

    def response(self, thought: str, calls: Sequence[ToolCall]) -> str:
        return f"<think>\n{thought}\n</think>\n\n{in_tags([call.json for call in calls])}"
