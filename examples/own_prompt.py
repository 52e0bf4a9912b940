"""A prompt of one's own: the model is told where it is in the task, and answers with a call alone.

model_config:
  prompt_version: examples/own_prompt.py:terse
"""

from agents.prompts import prompt
from agents.tool import Tool

SYSTEM = """You drive a web browser through one tool:
{definition}
Each message shows the page after your last call. Answer with one call and nothing else:
<tool_call>{example}</tool_call>"""


@prompt("terse")
class Terse:
    """No thought stands before the call: the fewest tokens."""

    def system(self, tool: Tool) -> str:
        return SYSTEM.format(definition=tool.definition, example=tool.example)

    def response(self, thought: str, call: str) -> str:
        return f"<tool_call>{call}</tool_call>"
