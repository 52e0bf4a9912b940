"""All action spaces, and what makes an action one of them."""

from agents.action_space import GRID, ActionSpace
from agents.keys import chords
from schemas.messages import Action, ActionKind

STANDARD = ActionSpace()
EXTENDED = ActionSpace(actions="extended")
MARKS = ActionSpace(mode="set_of_marks")
EXTENDED_MARKS = ActionSpace(mode="set_of_marks", actions="extended")
ALL = (STANDARD, EXTENDED, MARKS, EXTENDED_MARKS)
"""Of Millrace's own tools."""
OPENWEBRL = ActionSpace(actions="openwebrl")


def assert_within(action: Action, space: ActionSpace) -> None:
    """The space offers the action, with every argument that it needs, each of them fit to be carried out."""
    known = space.tool.actions[action.kind]
    if space == OPENWEBRL and action.kind is ActionKind.TYPE:
        assert (action.point, action.enter) == (None, False)
    may_be_empty = action.kind is ActionKind.TYPE or (action.kind is ActionKind.ANSWER and space.tool.ends_without_answer)
    words = {ours: theirs for theirs, ours in known.words.items()}
    said = {
        "coordinate": action.point,
        "end_coordinate": action.end_point,
        "element_id": action.element,
        "end_element_id": action.end_element,
        "text": action.text if may_be_empty else action.text or None,
        "url": action.text or None,
        "keys": action.keys or None,
        "direction": action.direction,
        "tab": action.tab,
    }
    assert all(said[words.get(name, name)] is not None for name in known.needs)
    targets = ("coordinate", "end_coordinate", "element_id", "end_element_id")
    taken = [words.get(name, name) for name in (*known.needs, *known.may)]
    assert all(said[name] is None for name in targets if name not in taken)
    assert all(0 <= value <= GRID for point in (action.point, action.end_point) if point for value in point)
    assert all(number >= 1 for number in (action.element, action.end_element, action.tab) if number is not None)
    assert chords(action.keys) == action.keys
    assert action.direction in space.tool.directions
    assert action.enter or space.tool.types_at_focus
    assert action.amount == 1 or space.tool.scroll_amount is not None
    assert 0 <= action.seconds <= 60
    assert 1 <= action.num_lines <= 1_000
