"""A vocabulary of one's own: an agent that only taps and finishes.

context_config:
  actions: examples/own_vocabulary.py:tap
"""

from agents.tool import Tool, ToolAction, tool_definition
from agents.vocabularies import vocabulary
from schemas.messages import ActionKind


@vocabulary("tap")
def tap(*, marked: bool) -> Tool:
    """Two actions; `argument` names are those of `agents.aliases`."""
    target = "element_id" if marked else "coordinate"
    actions = (
        ToolAction(ActionKind.CLICK, "tap_on", "taps on the screen", needs=(target,), may=()),
        ToolAction(ActionKind.ANSWER, "finish", "ends the task", needs=("text",), may=()),
    )
    arguments = {
        "element_id": {"type": "integer", "description": "the number of a marked element. For $actions."},
        "coordinate": {"type": "array", "description": "x and y, from 0 to 1000. For $actions."},
        "text": {"type": "string", "description": "what you found out. For $actions."},
    }
    return Tool(
        name="phone",
        actions={action.kind: action for action in actions},
        definition=tool_definition("phone", "A touch screen.", actions, arguments),
        example=f'{{"name": "phone", "arguments": {{"action": "tap_on", "{target}": ...}}}}',
    )
