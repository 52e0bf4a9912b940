"""Raw model output to an action of the run's action space. Reading never fails: what cannot be understood, and what the space
does not offer, is a wait of two seconds."""

import re
from dataclasses import dataclass

from agents.action_space import ActionSpace
from agents.aliases import spelled_action
from agents.calls import Call, calls
from agents.reading import read_action
from schemas.messages import Action, ActionKind
from schemas.text import valid

_MAX_THOUGHT = 300
_FALLBACK = Action(kind=ActionKind.WAIT, seconds=2.0)
_STANDARD = ActionSpace()
_ACTION_LINE = re.compile(r"^[^\S\n]*+Action:[ \t]*+(\S.*+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Parsed:
    action: Action
    parsed: bool
    """False: nothing could be understood and `action` is the fallback."""
    thought: str
    """The sentence after `Action:`, or empty."""


def parse_response(response: str, space: ActionSpace = _STANDARD) -> Parsed:
    """Reads the first tool call of a response that says something the space offers; anything before the end of a `<think>`
    block is left out. Never raises. Time is linear in the response, whatever it says."""
    said = response.rpartition("</think>")[2]
    thought = _thought(said)
    for call in calls(said):
        action = _action(call, space)
        if action is not None:
            return Parsed(action, True, thought)
    return Parsed(_FALLBACK, False, thought)


def _thought(said: str) -> str:
    before_call = said.partition("<tool_call>")[0]
    lines = _ACTION_LINE.findall(before_call)
    return valid(str(lines[-1]).rstrip(), _MAX_THOUGHT) if lines else ""


def _action(call: Call, space: ActionSpace) -> Action | None:
    spelled = spelled_action(call, space.tool)
    if spelled is None or spelled.kind not in space.tool.actions:
        return None
    return read_action(spelled.kind, spelled.call, space)
