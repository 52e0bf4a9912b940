"""Answers against reference answers, by value."""

import msgspec
import pytest

from judges.judge import Judge, Ruling
from schemas.errors import NoVerdict
from schemas.extensions import JUDGES
from schemas.messages import Outcome, Verdict
from tests import builders

pytestmark = pytest.mark.anyio
EXACT, NUMERIC, FUZZY = "answer_exact_v1", "answer_numeric_v1", "answer_fuzzy_v1"
JUDGE_OF: dict[str, Judge] = {name: JUDGES.find(name).made() for name in (EXACT, NUMERIC, FUZZY)}


async def ruling(judge: str, reference: str | None, answer: str) -> Ruling:
    task = msgspec.structs.replace(builders.task(), reference_answer=reference)
    # What the page itself rewards is of no account.
    trajectory = builders.trajectory(task, outcome=Outcome.ANSWERED, reward=1.0)
    return await JUDGE_OF[judge].judge(builders.judged_episode(msgspec.structs.replace(trajectory, answer=answer)))


@pytest.mark.parametrize(
    ("judge", "reference", "answer", "passed"),
    [
        (EXACT, "Oak", "oak.", True),
        (EXACT, "Oak", "oak board", False),
        (EXACT, "Oak", "", False),
        (EXACT, "sofa |OR| couch", "Couch", True),
        (EXACT, "sofa |OR| couch", "sofa or couch", False),
        (EXACT, "to be or not to be", "to be", False),
        (EXACT, "|OR| oak |OR|", "", False),
        (NUMERIC, "12.90 EUR", "It costs €12,90", True),
        (NUMERIC, "12.90 EUR", "12.91", False),
        (NUMERIC, "1,234", "1234 visitors", True),
        (NUMERIC, "4 |OR| 5", "5", True),
        (NUMERIC, "5", "3 or 4 or 5", False),
        (NUMERIC, "5", "five", False),
        (NUMERIC, "5", "", False),
        (NUMERIC, "0.0000001", "0.0000001", True),
        (FUZZY, "grey oak board", "Board, gray oak", True),
        (FUZZY, "14 working days", "15 working days", False),
        (FUZZY, "available", "not available", False),
        (FUZZY, "weekly |OR| every week", "week, every", True),
        (FUZZY, "oak", " ", False),
    ],
)
async def test_an_answer_is_compared(judge: str, reference: str, answer: str, passed: bool) -> None:
    found = await ruling(judge, reference, answer)
    assert (found.verdict, found.reward) == ((Verdict.SUCCESS, 1.0) if passed else (Verdict.FAILURE, 0.0))
    assert [(stage.stage, stage.passed) for stage in found.stages] == [("answer", passed)]
    assert found.stages[0].reasoning


@pytest.mark.parametrize("judge", sorted(JUDGE_OF))
@pytest.mark.parametrize("reference", [None, "", " |OR| "])
async def test_without_a_reference_there_is_no_verdict(judge: str, reference: str | None) -> None:
    with pytest.raises(NoVerdict, match=f"{judge} needs a reference answer, which task t1 has not: add its definite_answer"):
        await ruling(judge, reference, "oak")


@pytest.mark.parametrize(("reference", "number"), [("many", 0), ("3 to 5", 2), ("5 |OR| some", 0)])
async def test_a_reference_without_one_number_is_not_compared_by_number(reference: str, number: int) -> None:
    with pytest.raises(NoVerdict, match=f"of task t1 holds {number} numbers: write one"):
        await ruling(NUMERIC, reference, "5")
