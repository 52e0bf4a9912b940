"""What has to hold for a success, and what comes next."""

import msgspec
import pytest

from judges.rubric.stages import StageKind, next_stage, required_stages, succeeded, was_blocked
from schemas.messages import Fact, StageVerdict
from tests.support.judging.rubric_world import rubric_task

_ALWAYS = ["blocking", "answer", "keypoint", "criterion_b"]


@pytest.mark.parametrize(
    ("num_facts", "reference", "names"),
    [
        (1, None, ["criterion_a_1"]),
        (3, None, ["criterion_a_1", "criterion_a_2", "criterion_a_3"]),
        (2, "20", ["criterion_a_1", "criterion_a_2", "reference"]),
        (0, "20", ["reference"]),
        (0, None, ["criterion_a_1"]),
        (0, "  ", ["criterion_a_1"]),
    ],
)
def test_what_must_hold(num_facts: int, reference: str | None, names: list[str]) -> None:
    stages = required_stages(rubric_task(num_facts=num_facts, reference=reference))
    assert [stage.name for stage in stages] == _ALWAYS + names


def test_a_task_that_says_nothing_else_is_measured_by_its_instruction() -> None:
    stage = required_stages(rubric_task(num_facts=0))[-1]
    assert (stage.kind, stage.fact) == (StageKind.CRITERION_A, Fact("find the price of the lamp", difficulty=4))


def _all_passed(num_facts: int = 2) -> list[StageVerdict]:
    return [
        StageVerdict(stage.name, passed=True) for stage in required_stages(rubric_task(num_facts=num_facts, reference="20"))
    ]


def test_everything_passed_is_success() -> None:
    assert succeeded(required_stages(rubric_task(num_facts=2, reference="20")), _all_passed())


def test_a_stage_that_was_left_out_or_failed_or_stands_elsewhere_is_no_success() -> None:
    required, passed = required_stages(rubric_task(num_facts=2, reference="20")), _all_passed()
    for index, verdict in enumerate(passed):
        failed = msgspec.structs.replace(verdict, passed=False)
        for found in (
            passed[:index] + passed[index + 1 :],
            passed[:index],
            [*passed[:index], failed, *passed[index + 1 :]],
            [*passed[:index], passed[0 if index else 1], *passed[index + 1 :]],
            [*passed, verdict],
        ):
            assert not succeeded(required, found), [(each.stage, each.passed) for each in found]


def test_nothing_required_is_no_success() -> None:
    assert not succeeded((), ())


def test_the_next_stage_is_the_first_without_a_verdict_until_one_failed() -> None:
    required, passed = required_stages(rubric_task(num_facts=2, reference="20")), _all_passed()
    for index, stage in enumerate(required):
        assert next_stage(required, passed[:index]) is stage
        failed = msgspec.structs.replace(passed[index], passed=False)
        assert next_stage(required, [*passed[:index], failed]) is None
    assert next_stage(required, passed) is None


def test_blocked_is_said_by_the_blocking_stage_alone() -> None:
    blocked = StageVerdict("blocking", passed=False)
    assert was_blocked([blocked]) is blocked
    assert was_blocked([StageVerdict("blocking", passed=True), StageVerdict("criterion_b", passed=False)]) is None
