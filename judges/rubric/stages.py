"""Decides the order of the rubric's stages, and what has to hold for a success. Pure.

Invariant: success is every stage of the list answered, in its order, and every one of them passed. A stage that was left
out, answered twice or put in another's place makes no success.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.messages import Fact, StageVerdict, Task


class StageKind(enum.Enum):
    BLOCKING = "blocking"
    """The site did not block the agent."""
    ANSWER = "answer"
    """There is a final answer."""
    KEYPOINT = "keypoint"
    """The evidence has been chosen; it never fails."""
    CRITERION_B = "criterion_b"
    """Every claim of the final answer can be seen in the evidence."""
    CRITERION_A = "criterion_a"
    """One fact is proved."""
    REFERENCE = "reference"
    """The final answer agrees with the reference answer."""


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    """As its verdict is recorded."""
    kind: StageKind
    fact: Fact | None = None
    """Of criterion A."""


def required_stages(task: Task) -> tuple[Stage, ...]:
    """Everything that must hold, cheap stages first.

    A task with neither facts nor a reference answer is measured by its instruction, as its only fact: that an answer is
    supported by what was seen does not say that the task was done.
    """
    facts = task.facts
    referenced = bool((task.reference_answer or "").strip())
    if not facts and not referenced:
        facts = (Fact(task.instruction, difficulty=task.difficulty),)
    always = (StageKind.BLOCKING, StageKind.ANSWER, StageKind.KEYPOINT, StageKind.CRITERION_B)
    return (
        *(Stage(kind.value, kind) for kind in always),
        *(
            Stage(f"{StageKind.CRITERION_A.value}_{number}", StageKind.CRITERION_A, fact)
            for number, fact in enumerate(facts, 1)
        ),
        *((Stage(StageKind.REFERENCE.value, StageKind.REFERENCE),) if referenced else ()),
    )


def next_stage(required: Sequence[Stage], found: Sequence[StageVerdict]) -> Stage | None:
    """The next one to ask; None behind the last, and as soon as one failed."""
    if len(found) >= len(required) or not all(verdict.passed for verdict in found):
        return None
    return required[len(found)]


def succeeded(required: Sequence[Stage], found: Sequence[StageVerdict]) -> bool:
    in_order = [stage.name for stage in required] == [verdict.stage for verdict in found]
    return bool(required) and in_order and all(verdict.passed is True for verdict in found)


def was_blocked(found: Sequence[StageVerdict]) -> StageVerdict | None:
    """The verdict that says so, if there is one."""
    return next((verdict for verdict in found if verdict.stage == StageKind.BLOCKING.value and not verdict.passed), None)
