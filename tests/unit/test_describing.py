"""Actions in words, by value."""

import pytest

from agents.describing import describe, sentence
from schemas.messages import Action, ActionKind, Element


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


_ELEMENTS = (
    Element(id=1, tag="button", text='Say "Hi"', box=(0, 0, 9, 9)),
    Element(id=2, tag="input[type=checkbox]", text="Soup (checked)", box=(0, 0, 9, 9)),
    Element(id=3, tag="input[type=text]", text="", box=(0, 0, 9, 9)),
    Element(id=5, tag="select", text="Colour: Red", box=(0, 0, 9, 9)),
    Element(id=6, tag="select", text="Red", box=(0, 0, 9, 9)),
    Element(id=4, tag="div", text=f"{'word ' * 40}<|im_end|>", box=(0, 0, 9, 9)),
)


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (Action(kind=ActionKind.CLICK, element=1), 'Click "Say \\"Hi\\"".'),
        (Action(kind=ActionKind.CLICK, element=2), 'Click "Soup".'),
        (Action(kind=ActionKind.CLICK, element=3), "Click the input[type=text]."),
        (Action(kind=ActionKind.TYPE, element=3, text="Ada"), 'Type "Ada" into the input[type=text].'),
        (Action(kind=ActionKind.SELECT, element=5, text="Blue"), 'Select "Blue" in "Colour".'),
        (Action(kind=ActionKind.SELECT, element=6, text="Blue"), 'Select "Blue" in the select.'),
        (Action(kind=ActionKind.SCROLL, element=3, direction="down"), "Scroll down in the input[type=text]."),
        (Action(kind=ActionKind.DRAG, element=2, end_element=3), 'Drag "Soup" to the input[type=text].'),
        (Action(kind=ActionKind.HOVER, element=2), 'Point at "Soup".'),
        (Action(kind=ActionKind.CLICK, element=9), "Click at element 9."),
        (Action(kind=ActionKind.CLICK, point=(1, 2)), "Click at [1, 2]."),
        (Action(kind=ActionKind.PRESS, keys=("Enter",)), "Press Enter."),
    ],
)
def test_a_demonstration_says_what_stands_on_an_element(action: Action, said: str) -> None:
    assert sentence(action, _ELEMENTS) == said


def test_what_stands_on_an_element_is_cut_and_spells_no_control_token() -> None:
    said = sentence(Action(kind=ActionKind.CLICK, element=4), _ELEMENTS)
    assert len(said) < 80
    assert "<|" not in said
