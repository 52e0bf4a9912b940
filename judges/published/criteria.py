"""The Universal Verifier's rubric: criteria with points, what each earned, and what that comes to. Pure.

Invariant: a score does not contradict itself: points are missing where the agent failed, and nowhere without a failure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judges.published.forms import TEXT, WHOLE, Fields, Form, line, whole
from judges.rubric.asking import Finding, MalformedVerdict
from judges.rubric.untrusted import shortened
from judges.rubric.verdicts import chosen, shown, worded
from schemas.messages import Fact

_MOST_CRITERIA = 20
_MOST_POINTS = 10
_CONDITION_LIMIT = 500
NO_FAILURE, OF_AGENT, OBSTACLE = "NONE", "AGENT", "OBSTACLE"


@dataclass(frozen=True, slots=True)
class Criterion:
    description: str
    condition: str = ""
    """Empty: it always applies."""
    points: int = 1


@dataclass(frozen=True, slots=True)
class Rubric(Finding):
    criteria: tuple[Criterion, ...]


@dataclass(frozen=True, slots=True)
class Credit(Finding):
    """What one criterion earned; passed where it earned all or does not apply."""

    applies: bool
    earned: int
    failure: str


def criteria_of(facts: Sequence[Fact]) -> tuple[Criterion, ...]:
    """One a fact, a point each."""
    return tuple(Criterion(f"{fact.description} ({fact.group})" if fact.group else fact.description) for fact in facts)


def rubric_form() -> Form[Rubric]:
    def reads(fields: Fields) -> Rubric:
        given = fields["criteria"]
        if not isinstance(given, list) or not 0 < len(given) <= _MOST_CRITERIA:
            raise MalformedVerdict(f"criteria is {shown(given)} instead of a list of 1 to {_MOST_CRITERIA} objects")
        return Rubric(True, worded(fields, "reasoning"), tuple(map(_criterion, given)))

    names = {"description": TEXT, "condition": TEXT, "points": WHOLE}
    entry = {"type": "object", "properties": names, "required": list(names), "additionalProperties": False}
    properties: Mapping[str, Mapping[str, object]] = {"reasoning": TEXT, "criteria": {"type": "array", "items": entry}}
    return Form(name="rubric", properties=properties, finding=Rubric, reads=reads)


def credit_form(criterion: Criterion) -> Form[Credit]:
    def reads(fields: Fields) -> Credit:
        applies = fields["applies"]
        if not isinstance(applies, bool) or not (applies or criterion.condition):
            raise MalformedVerdict(
                f"applies is {shown(applies)} of a criterion with the condition {shown(criterion.condition)}"
            )
        earned = whole(fields, "earned", 0, criterion.points)
        failure = chosen(fields, "failure", (NO_FAILURE, OF_AGENT, OBSTACLE))
        is_all = earned == criterion.points
        if applies and failure != OBSTACLE and is_all != (failure == NO_FAILURE):
            raise MalformedVerdict(f"{earned} of {criterion.points} points contradict the failure {failure}")
        return Credit(is_all or not applies, worded(fields, "reasoning"), applies, earned, failure)

    words = {"type": "string", "enum": [NO_FAILURE, OF_AGENT, OBSTACLE]}
    properties = {"reasoning": TEXT, "applies": {"type": "boolean"}, "earned": WHOLE, "failure": words}
    return Form(name="criterion_credit", properties=properties, finding=Credit, reads=reads)


def process_score(criteria: Sequence[Criterion], credits: Sequence[Credit], num_side_effects: int) -> tuple[int, int]:
    """Points earned, and points there were: of the criteria that apply, and one lost for each side effect.

    What an obstacle kept from being met is worth all its points: the agent had it not in its hands.
    """
    applying = [pair for pair in zip(criteria, credits, strict=True) if pair[1].applies]
    earned = sum(each.points if credit.failure == OBSTACLE else credit.earned for each, credit in applying)
    return earned, sum(each.points for each, _ in applying) + num_side_effects


def told(criterion: Criterion, credit: Credit) -> str:
    """One criterion with its score, on a line."""
    worth = f"{credit.earned} of {criterion.points} points" if credit.applies else "does not apply"
    failed = "" if credit.failure == NO_FAILURE or not credit.applies else f", failure: {credit.failure}"
    return f"{criterion.description}: {worth}{failed}. {' '.join(credit.reasoning.split())}"


def _criterion(given: object) -> Criterion:
    if not isinstance(given, dict) or set(given) != {"description", "condition", "points"}:
        raise MalformedVerdict(f"a criterion is {shown(given)} instead of description, condition and points")
    description, condition = line(given["description"], "description"), given["condition"]
    if not isinstance(condition, str):
        raise MalformedVerdict(f"the condition is {shown(condition)} instead of a text")
    points = whole(given, "points", 1, _MOST_POINTS)
    return Criterion(description, shortened(" ".join(condition.split()), _CONDITION_LIMIT), points)
