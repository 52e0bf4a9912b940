"""A prompt of one's own: the model is told where it is in the task, and answers with a call alone.

model_config:
  prompt_version: examples/own_prompt.py:terse
"""

from collections.abc import Sequence

from agents.prompts import in_tags, prompt
from agents.tool import Tool, ToolCall

SYSTEM = """You drive a web browser through one tool:
{definition}
Each message shows the page after your last call. Answer with one call and nothing else:
<tool_call>{example}</tool_call>"""


@prompt("terse")
class Terse:
    """No thought stands before the call: the fewest tokens."""

    def system(self, tool: Tool) -> str:
        return SYSTEM.format(definition=tool.definition, example=tool.example)

    def response(self, thought: str, calls: Sequence[ToolCall]) -> str:
        return in_tags([call.json for call in calls])
