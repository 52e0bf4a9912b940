"""OpenWebRL's form of answer as Qwen3.5 gives it: thinking, then any number of calls, in XML."""

from collections.abc import Sequence

from agents.prompts import filled, in_tags, prompt
from agents.tool import Tool, ToolCall

_EXAMPLE = """\
<function=name of the tool>
<parameter=name of an argument>
its value
</parameter>
</function>"""


@prompt("openwebrl_xml")
class OpenWebRLXml:
    """As `openwebrl` but for the calls."""

    def system(self, tool: Tool) -> str:
        return filled("openwebrl.txt", tool, _EXAMPLE)

    def response(self, thought: str, calls: Sequence[ToolCall]) -> str:
        return f"<think>\n{thought}\n</think>\n\n{in_tags([call.xml for call in calls])}"
