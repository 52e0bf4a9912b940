"""Actions in words, by value."""

import pytest

from agents.describing import describe
from schemas.messages import Action, ActionKind


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (Action(kind=ActionKind.CLICK, point=(1, 2.5)), "click at [1, 2.5]"),
        (Action(kind=ActionKind.CLICK, element=7), "click at element 7"),
        (Action(kind=ActionKind.DOUBLE_CLICK, point=(1, 2)), "double click at [1, 2]"),
        (Action(kind=ActionKind.RIGHT_CLICK, element=7), "right click at element 7"),
        (Action(kind=ActionKind.DRAG, point=(1, 2), end_point=(3, 4)), "drag at [1, 2] to [3, 4]"),
        (Action(kind=ActionKind.DRAG, element=1, end_element=2), "drag at element 1 to element 2"),
        (Action(kind=ActionKind.TYPE, point=(1, 2), text="Ada"), "type 'Ada' at [1, 2]"),
        (Action(kind=ActionKind.TYPE, text="Ada", enter=False), "type 'Ada' without Enter"),
        (Action(kind=ActionKind.PRESS, keys=("Control+a", "Delete")), "press Control+a Delete"),
        (Action(kind=ActionKind.SELECT, element=3, text="Blue"), "select 'Blue' at element 3"),
        (Action(kind=ActionKind.HOVER, point=(1, 2)), "hover at [1, 2]"),
        (Action(kind=ActionKind.SCROLL, direction="left"), "scroll left"),
        (Action(kind=ActionKind.WAIT, seconds=2.0), "wait 2 s"),
        (Action(kind=ActionKind.GO_BACK), "go back"),
        (Action(kind=ActionKind.NAVIGATE, text="a.org"), "navigate a.org"),
        (Action(kind=ActionKind.NEW_TAB), "new tab"),
        (Action(kind=ActionKind.NEW_TAB, text="a.org"), "new tab a.org"),
        (Action(kind=ActionKind.SWITCH_TAB, tab=2), "switch tab 2"),
        (Action(kind=ActionKind.CLOSE_TAB), "close tab"),
        (Action(kind=ActionKind.READ_PAGE), "read page"),
        (Action(kind=ActionKind.ANSWER, text="42"), "answer 42"),
    ],
)
def test_words(action: Action, words: str) -> None:
    assert describe(action) == words


def test_every_kind_has_words() -> None:
    assert all(describe(Action(kind=kind)) for kind in ActionKind)
