"""What published evaluators are told of answers that hold several actions."""

import msgspec

from judges.published.history import actions, actions_with_feedback, actions_with_thoughts
from schemas.messages import Action, ActionEffect, ActionKind, ActionResult
from tests import builders

TASK = builders.task()
CLICK, TYPE = Action(kind=ActionKind.CLICK, point=(1, 2)), Action(kind=ActionKind.TYPE, text="tea", enter=False)
DONE = Action(kind=ActionKind.ANSWER, text="here")
STEPS = [
    msgspec.structs.replace(builders.step_request(TASK, 0), action=CLICK, further=(TYPE,), thought="search"),
    msgspec.structs.replace(builders.step_request(TASK, 1), action=CLICK, further=(DONE,), thought="done"),
    msgspec.structs.replace(builders.step_request(TASK, 2), action=DONE, thought="done again"),
]
OBSERVATIONS = [
    builders.observation(TASK, 0),
    msgspec.structs.replace(
        builders.observation(TASK, 1),
        effect=ActionEffect.CHANGED,
        hit="field",
        earlier_results=(ActionResult(hit="button", error="slow", changes=("focus",)),),
    ),
    builders.observation(TASK, 2),
]


def test_every_action_of_a_step_is_told_and_the_answer_is_not() -> None:
    assert actions(STEPS) == 'step 0: click at (1, 2), then type "tea"\nstep 1: click at (1, 2)'
    assert actions_with_thoughts(STEPS).splitlines()[:2] == [
        "step 0, thought: search",
        'step 0: click at (1, 2), then type "tea"',
    ]


def test_feedback_is_of_all_actions_in_their_order() -> None:
    told = actions_with_feedback(OBSERVATIONS, STEPS).splitlines()
    assert told[:2] == [
        'step 0: click at (1, 2), then type "tea"',
        "    feedback: the page changed; reached button; slow; focus; reached field",
    ]
    long = msgspec.structs.replace(OBSERVATIONS[1], hit="x" * 400, error="slow")
    told_long = actions_with_feedback([OBSERVATIONS[0], long], STEPS).splitlines()[1]
    cut = "reached " + "x" * 292 + " [114 more characters are left out]"
    assert told_long == f"    feedback: the page changed; reached button; slow; focus; {cut}"
    assert told[-2:] == ['step 1: click at (1, 2), then answer "here"', 'step 2: answer "here"']
