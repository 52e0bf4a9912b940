"""What an agent did, a line a step: the action, what it wrote about it, what the browser said. All of it is untrusted text."""

from collections.abc import Iterator, Sequence

from judges.rubric.moments import describe
from judges.rubric.untrusted import on_one_line
from schemas.messages import Action, ActionEffect, ActionKind, ActionResult, Observation, StepRequest

_THOUGHT_LIMIT = 600
_RESULT_LIMIT = 300
"""Characters of what the browser said of one action; OpenWebRL's."""
_HISTORY_LIMIT = 60_000
_EFFECTS = {
    ActionEffect.NONE: "",
    ActionEffect.CHANGED: "the page changed",
    ActionEffect.UNCHANGED: "nothing changed",
    ActionEffect.NAVIGATION_FAILED: "the page could not be opened",
    ActionEffect.REFUSED: "it could not be carried out",
}


def actions(steps: Sequence[StepRequest]) -> str:
    """Without the answer, which is what the agent says and not what it did."""
    return _ended(_action(step, done) for step in steps if (done := _before_answer(step)))


def actions_with_thoughts(steps: Sequence[StepRequest]) -> str:
    """Each action behind the thought that led to it; without the answer."""
    return _ended(f"{_thought(step)}\n{_action(step, done)}" for step in steps if (done := _before_answer(step)))


def actions_with_feedback(observations: Sequence[Observation], steps: Sequence[StepRequest]) -> str:
    """Each action with what the browser said of it, the answer included."""
    feedback = [_feedback(observation) for observation in observations[1:]]
    feedback += [""] * (len(steps) - len(feedback))
    told = (
        _action(step, step.actions) + (f"\n    feedback: {said}" if said else "")
        for step, said in zip(steps, feedback, strict=False)
    )
    return _ended(told)


def _before_answer(step: StepRequest) -> tuple[Action, ...]:
    """All actions of a step but the answer."""
    return tuple(action for action in step.actions if not (step.parsed and action.kind is ActionKind.ANSWER))


def _action(step: StepRequest, done: Sequence[Action]) -> str:
    said = ", then ".join(map(describe, done)) if step.parsed else "nothing that could be read as an action"
    return f"step {step.step}: {said}"


def _thought(step: StepRequest) -> str:
    return f"step {step.step}, thought: {on_one_line(step.thought, _THOUGHT_LIMIT) or '(none)'}"


def _feedback(observation: Observation) -> str:
    """Of every action of the step before, the effect of all of them first."""
    of_last = ActionResult(error=observation.error, hit=observation.hit, changes=observation.changes)
    results = map(_result, (*observation.earlier_results, of_last))
    return "; ".join(part for part in (_EFFECTS[observation.effect], *results) if part)


def _result(result: ActionResult) -> str:
    parts = (f"reached {result.hit}" if result.hit else "", result.error, *result.changes)
    return on_one_line("; ".join(part for part in parts if part), _RESULT_LIMIT)


def _ended(lines: Iterator[str]) -> str:
    """All of it, or of a long one the end."""
    told = "\n".join(lines) or "(no action)"
    left_out = len(told) - _HISTORY_LIMIT
    return told if left_out <= 0 else f"[{left_out} characters of earlier steps are left out]\n{told[left_out:]}"
