"""All action spaces, and what makes an action one of them."""

from agents.action_space import GRID, ActionSpace
from agents.keys import chords
from schemas.messages import Action, ActionKind

STANDARD = ActionSpace()
EXTENDED = ActionSpace(actions="extended")
MARKS = ActionSpace(mode="set_of_marks")
EXTENDED_MARKS = ActionSpace(mode="set_of_marks", actions="extended")
ALL = (STANDARD, EXTENDED, MARKS, EXTENDED_MARKS)


def assert_within(action: Action, space: ActionSpace) -> None:
    """The space offers the action, with every argument that it needs, each of them fit to be carried out."""
    known = space.tool.actions[action.kind]
    said = {
        "coordinate": action.point,
        "end_coordinate": action.end_point,
        "element_id": action.element,
        "end_element_id": action.end_element,
        "text": action.text if action.kind is ActionKind.TYPE else action.text or None,
        "url": action.text or None,
        "keys": action.keys or None,
        "direction": action.direction,
        "tab": action.tab,
    }
    assert all(said[name] is not None for name in known.needs)
    targets = ("coordinate", "end_coordinate", "element_id", "end_element_id")
    assert all(said[name] is None for name in targets if name not in (*known.needs, *known.may))
    assert all(0 <= value <= GRID for point in (action.point, action.end_point) if point for value in point)
    assert all(number >= 1 for number in (action.element, action.end_element, action.tab) if number is not None)
    assert chords(action.keys) == action.keys
    assert action.direction in space.tool.directions
    assert action.enter or space.tool.types_at_focus
    assert 0 <= action.seconds <= 60
    assert 1 <= action.num_lines <= 1_000
