"""The long prompt (WebGym): Memory, Progress, Intention, Action, tool_call."""

from agents.prompts import filled, prompt
from agents.tool import Tool


@prompt("complete")
class Complete:
    """What the model wants to remember stands in its own answers."""

    def system(self, tool: Tool) -> str:
        return filled("complete.txt", tool)

    def response(self, thought: str, call: str) -> str:
        """Memory and Progress are empty, and the thought is the Intention too."""
        head = f'Memory: {{}}\nProgress: {{"done": [], "left": []}}\nIntention: {thought}'
        return f"{head}\nAction: {thought}\n<tool_call>\n{call}\n</tool_call>"
