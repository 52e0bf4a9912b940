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
    further: tuple[Action, ...] = ()
    """Behind `action`, where an answer may have several calls."""
    num_left_out: int = 0
    """Calls that are none of these."""


def parse_response(response: str, space: ActionSpace = _STANDARD, *, max_calls: int = 1) -> Parsed:
    """Reads tool calls of a response that say something the space offers: the first one, or with a higher `max_calls` so many
    in order, up to the one that ends the episode. Anything before the end of a `<think>` block is left out. Never raises. Time
    is linear in the response, whatever it says."""
    said = response.rpartition("</think>")[2]
    thought = _thought(said)
    found = calls(said)
    actions: list[Action] = []
    for call in found:
        if (action := _action(call, space)) is not None:
            actions.append(action)
            if len(actions) == max_calls or action.kind is ActionKind.ANSWER:
                break
    if not actions:
        return Parsed(_FALLBACK, False, thought)
    return Parsed(actions[0], True, thought, tuple(actions[1:]), len(found) - len(actions) if max_calls > 1 else 0)


def _thought(said: str) -> str:
    before_call = said.partition("<tool_call>")[0]
    lines = _ACTION_LINE.findall(before_call)
    return valid(str(lines[-1]).rstrip(), _MAX_THOUGHT) if lines else ""


def _action(call: Call, space: ActionSpace) -> Action | None:
    spelled = spelled_action(call, space.tool)
    if spelled is None or spelled.kind not in space.tool.actions:
        return None
    return read_action(spelled.kind, spelled.call, space)
