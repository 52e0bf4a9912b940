"""Whatever the stages come to: reward 1 exactly if all of them hold, no reward without a verdict, no question too many."""

from itertools import product

import pytest

from judges.rubric.asking import Inquiry
from schemas.errors import NoVerdict
from schemas.messages import Task, Verdict
from tests.support.judging.rubric_world import Models, episode, rubric_judge, rubric_task, seen, verdict, word

pytestmark = pytest.mark.anyio
_HOLDS, _FAILS, _NONE = "holds", "fails", "none"
_STATES = (_HOLDS, _FAILS, _NONE)


def _expected(answers: list[tuple[str, str]]) -> tuple[list[str], Verdict]:
    """The questions asked and the verdict, told as a story; `answer` is no question."""
    asked = list[str]()
    for stage, state in answers:
        if stage != "answer":
            asked.append(stage)
        if state == _NONE:
            return asked, Verdict.ERROR
        if state == _FAILS and stage != "keypoint":
            return asked, Verdict.EXCLUDED if stage == "blocking" else Verdict.FAILURE
    return asked, Verdict.SUCCESS


async def _check(of: Task, answers: list[tuple[str, str]]) -> Verdict:
    states = [state for stage, state in answers if stage != "answer"]

    def answer(inquiry: Inquiry) -> str | NoVerdict:
        state = states[len(models.asked) - 1]
        if state == _NONE:
            return NoVerdict("nobody knows")
        return verdict(word(inquiry, passed=(state == _HOLDS) != (inquiry.stage == "blocking")))

    models = Models(answer)
    text = "20 euros" if dict(answers)["answer"] == _HOLDS else ""
    ruling = await rubric_judge(models).judge(episode(of, seen(of, (b"a", b"b")), answer=text))
    asked, expected = _expected(answers)
    assert (models.stages, ruling.verdict) == (asked, expected), answers
    assert ruling.reward == {Verdict.SUCCESS: 1.0, Verdict.FAILURE: 0.0}.get(expected), answers
    assert ruling.blocked == (expected is Verdict.EXCLUDED), answers
    all_hold = all(state == _HOLDS or (stage == "keypoint" and state == _FAILS) for stage, state in answers)
    assert (ruling.reward == 1.0) == all_hold, answers
    assert [usage.num_calls for usage in ruling.usage] == [models.num_answers], answers
    return expected


@pytest.mark.parametrize("num_facts", range(4))
@pytest.mark.parametrize("reference", [None, "20 euros"])
async def test_every_combination_of_answers(num_facts: int, reference: str | None) -> None:
    of = rubric_task(num_facts=num_facts, reference=reference)
    num_asked_facts = num_facts or (0 if reference else 1)
    stages = ["blocking", "answer", "keypoint", "criterion_b", *["criterion_a"] * num_asked_facts]
    stages += ["reference"] if reference else []
    choices = [(_HOLDS, _FAILS) if stage == "answer" else _STATES for stage in stages]
    found = [await _check(of, list(zip(stages, states, strict=True))) for states in product(*choices)]
    assert found.count(Verdict.SUCCESS) == 2, "all hold, with the first screenshot needed or not"
    assert set(found) == set(Verdict)
