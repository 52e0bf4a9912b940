"""Whatever a model says, parsing gives an action that can be stored and carried out."""

import math

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from agents.context import without_thinking
from agents.parsing import parse_response, render_action
from bus.codec import encode
from schemas.messages import Action, ActionKind
from tests import builders

_PIECES = st.sampled_from(
    [
        "<tool_call>", "</tool_call>", "<think>", "</think>", "{", "}", "[", "]", '"', "'", ":", ",", "\\", "\\ud800", "\n",
        '"action"', "action", "left_click", "type", "scroll", "wait", "navigate", "answer", '"coordinate": [1, 2]',
        "coordinate", "1e999", "NaN", '"arguments"', '"text": "x"', '"time"', "true", "null", "Action:", "\x00",
    ]
)  # fmt: skip


_GOOD = render_action(Action(kind=ActionKind.CLICK, point=(120.0, 40.0)), thought="Click the button.")


@st.composite
def _damaged(draw: st.DrawFn) -> str:
    """A good response with a few characters put in, as a half-trained model writes it."""
    response = _GOOD
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(response)))
        response = response[:at] + draw(st.characters()) + response[at:]
    return response


@example(_GOOD.replace("[120, 40]", "[120, \x1e40"))
@given(
    st.one_of(st.text(), _damaged(), st.lists(_PIECES, max_size=25).map("".join), st.lists(_PIECES, max_size=25).map(" ".join))
)
def test_any_text(response: str) -> None:
    parsed = parse_response(response)
    action = parsed.action
    assert isinstance(action.kind, ActionKind)
    if action.point is not None:
        assert all(0 <= value <= 1000 for value in action.point)
    assert math.isfinite(action.seconds)
    assert parsed.parsed or action.kind is ActionKind.WAIT
    encode(msgspec.structs.replace(builders.step_request(builders.task()), action=action, thought=parsed.thought))
    without_thinking(response)
