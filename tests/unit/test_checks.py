"""Programmatic checks by value, with the traps that answers, addresses and pages set."""

from dataclasses import dataclass

import msgspec
import pytest

from judges.named.environment_v1 import EnvironmentJudge
from judges.programmatic.checks import evaluate
from schemas.errors import JudgeError
from schemas.messages import Check, CheckKind, CheckMatch, FinalState, Outcome, RewardPart, Verdict
from tests import builders

ANSWER, URL, PAGE = CheckKind.ANSWER, CheckKind.URL, CheckKind.PAGE
EQUALS, CONTAINS, NUMBER = CheckMatch.EQUALS, CheckMatch.CONTAINS, CheckMatch.NUMBER
PATTERN, FUZZY = CheckMatch.PATTERN, CheckMatch.FUZZY
HOST = "http://shop.test"


@dataclass(frozen=True)
class Row:
    kind: CheckKind
    match: CheckMatch
    value: str
    expected: str
    passed: bool


ROWS = [
    Row(ANSWER, EQUALS, "Oak", "oak", True),
    Row(ANSWER, EQUALS, "  the\n\toak  board ", "The Oak Board", True),
    Row(ANSWER, EQUALS, '"Oak".', "oak", True),
    Row(ANSWER, EQUALS, "“Oak.”", "oak", True),
    Row(ANSWER, EQUALS, "", "oak", False),
    Row(ANSWER, EQUALS, " \n", "oak", False),
    Row(ANSWER, EQUALS, "oaks", "oak", False),
    Row(ANSWER, EQUALS, "oak, steel, linen, wool", "oak", False),
    Row(ANSWER, EQUALS, "cafe\u0301", "café", True),
    Row(ANSWER, EQUALS, "ＯＡＫ", "oak", True),
    Row(ANSWER, EQUALS, "STRASSE", "straße", True),
    Row(ANSWER, CONTAINS, "It is made of Oak, I think", "oak", True),
    Row(ANSWER, CONTAINS, "it was soaked", "oak", False),
    Row(ANSWER, CONTAINS, "there are 15", "5", False),
    Row(ANSWER, CONTAINS, "there are 5.", "5", True),
    Row(ANSWER, CONTAINS, "the (blue)\none", "(blue) one", True),
    Row(ANSWER, NUMBER, "It costs €1,234.50 in all", "1234.5", True),
    Row(ANSWER, NUMBER, "12,90 €", "12.9", True),
    Row(ANSWER, NUMBER, "article B12 costs 5", "12", False),
    Row(ANSWER, NUMBER, "article B12 costs 5", "5", True),
    Row(ANSWER, NUMBER, "3 or 4 or 5", "5", False),
    Row(ANSWER, NUMBER, "\N{MINUS SIGN}7 degrees", "-7", True),
    Row(ANSWER, NUMBER, "3kg", "3", True),
    Row(ANSWER, NUMBER, "five", "5", False),
    Row(ANSWER, NUMBER, "0.0", "0", True),
    Row(ANSWER, NUMBER, "12.90", "12.91", False),
    Row(ANSWER, NUMBER, "", "0", False),
    Row(ANSWER, PATTERN, "open until 6 PM", r"\b(6|18)(:00)? ?p?m?\b", True),
    Row(ANSWER, PATTERN, "open until 16", r"\b6\b", False),
    Row(ANSWER, FUZZY, "the Oak board", "oak board", False),
    Row(ANSWER, FUZZY, "Board, oak!", "oak board", True),
    Row(PAGE, FUZZY, "delivery is free", "free delivery is", True),
    Row(URL, EQUALS, f"{HOST}/search?b=2&a=1", f"{HOST}/search?a=1&b=2", True),
    Row(URL, EQUALS, f"{HOST}/search/?a=1", f"{HOST}/search?a=1", True),
    Row(URL, EQUALS, f"{HOST}:80/", HOST, True),
    Row(URL, EQUALS, f"{HOST}/cart#top", f"{HOST}/cart", True),
    Row(URL, EQUALS, f"{HOST}/cart#top", f"{HOST}/cart#end", False),
    Row(URL, EQUALS, f"{HOST}/cart?a=1", f"{HOST}/cart", False),
    Row(URL, EQUALS, f"{HOST}/cart?a=1&a=1", f"{HOST}/cart?a=1", False),
    Row(URL, EQUALS, "http://other.test/cart", f"{HOST}/cart", False),
    Row(URL, EQUALS, f"{HOST}/category/garden", "/category/garden/", True),
    Row(URL, EQUALS, f"{HOST}/a%20b", "/a b", True),
    Row(URL, EQUALS, f"{HOST}:x/cart", f"{HOST}/cart", False),
    Row(URL, CONTAINS, f"{HOST}/list?page=22", "page=2", False),
    Row(URL, CONTAINS, f"{HOST}/list?page=2&a=1", "page=2", True),
    Row(URL, PATTERN, f"{HOST}/product/eider-mug", r"/product/[\w-]+$", True),
    Row(PAGE, EQUALS, "weekly", "Weekly", True),
    Row(PAGE, EQUALS, "weekly.", "weekly", False),
    Row(PAGE, EQUALS, "", "weekly", False),
    Row(PAGE, NUMBER, "2", "2", True),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind.value} {row.match.value} {row.value!r} {row.expected!r}")
def test_a_value_is_compared(row: Row) -> None:
    expression = "x" if row.kind is PAGE else ""
    check = Check(row.kind, (row.expected,), row.match, expression)
    state = FinalState(url=row.value if row.kind is URL else HOST, title="", values=(row.value,))
    (verdict,) = evaluate([check], row.value if row.kind is ANSWER else "", state)
    assert verdict.passed is row.passed, verdict.reasoning


def test_any_of_the_expected_values_will_do() -> None:
    check = Check(ANSWER, ("sofa", "couch"))
    assert [evaluate([check], answer, None)[0].passed for answer in ("couch", "sofa", "sofa couch")] == [True, True, False]


def test_each_check_has_a_sentence() -> None:
    checks = [
        Check(ANSWER, ("5", "five")),
        Check(URL, ("/cart",)),
        Check(PAGE, ("2",), NUMBER, "a"),
        Check(PAGE, ("x",), CONTAINS, "b"),
    ]
    state = FinalState(url=f"{HOST}/cart", title="Cart", values=("3", ""))
    assert [(each.stage, each.passed, each.reasoning) for each in evaluate(checks, "six", state)] == [
        ("check_1", False, 'the answer "six" does not equal "5" or "five"'),
        ("check_2", True, 'the address "http://shop.test/cart" equals "/cart"'),
        ("check_3", False, 'the page\'s value "3" does not have the number "2"'),
        ("check_4", False, "the page's value is empty"),
    ]


def test_without_a_page_only_the_answer_can_be_right() -> None:
    checks = [Check(ANSWER, ("yes",)), Check(URL, ("/cart",)), Check(PAGE, ("1",), expression="x")]
    verdicts = evaluate(checks, "yes", None)
    assert [each.passed for each in verdicts] == [True, False, False]
    assert "could not be read: the page was gone" in verdicts[1].reasoning
    assert "could not be read: the page was gone" in verdicts[2].reasoning


@pytest.mark.parametrize(("match", "expected"), [(NUMBER, "many"), (PATTERN, "(")])
def test_a_check_that_makes_no_sense_is_no_verdict(match: CheckMatch, expected: str) -> None:
    with pytest.raises(JudgeError, match="correct the task"):
        evaluate([Check(ANSWER, (expected,), match)], "3", None)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "values", "environment_reward", "verdict", "reward"),
    [
        ("blue", ("1",), None, Verdict.SUCCESS, 1.0),
        ("blue", ("0",), None, Verdict.FAILURE, 0.0),
        ("red", ("1",), None, Verdict.FAILURE, 0.0),
        # The page's own reward does not outweigh the task's checks.
        ("red", ("1",), 1.0, Verdict.FAILURE, 0.0),
    ],
)
async def test_all_checks_of_a_task_must_hold(
    answer: str, values: tuple[str, ...], environment_reward: float | None, verdict: Verdict, reward: float
) -> None:
    checks = (Check(ANSWER, ("blue",)), Check(PAGE, ("1",), expression="n"))
    task = msgspec.structs.replace(builders.task(), checks=checks)
    trajectory = msgspec.structs.replace(
        builders.trajectory(task, outcome=Outcome.ANSWERED, reward=environment_reward),
        answer=answer,
        final_state=FinalState(url=HOST, title="", values=values),
    )
    ruling = await EnvironmentJudge().judge(builders.judged_episode(trajectory))
    assert (ruling.verdict, ruling.reward, len(ruling.stages)) == (verdict, reward, 2)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reward", "success", "steps", "verdict"),
    [
        (1.0, None, (), Verdict.SUCCESS),
        (0.5, None, (), Verdict.FAILURE),
        # A solved task whose way cost something, and a way that earned much and led nowhere.
        (0.75, True, (-0.125, -0.125, 1.0), Verdict.SUCCESS),
        (2.0, False, (1.0, 1.0, 0.0), Verdict.FAILURE),
    ],
)
async def test_the_environment_says_what_was_solved_and_what_each_step_earned(
    reward: float, success: bool | None, steps: tuple[float, ...], verdict: Verdict
) -> None:
    trajectory = msgspec.structs.replace(
        builders.trajectory(builders.task(), reward=reward, num_steps=3),
        environment_success=success,
        environment_step_rewards=steps,
    )
    ruling = await EnvironmentJudge().judge(builders.judged_episode(trajectory))
    assert (ruling.verdict, ruling.reward, ruling.step_rewards) == (verdict, reward, steps)
    assert ruling.parts == (RewardPart("outcome", reward, steps),)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("checks", "answer", "verdict", "reward"),
    [
        ((Check(ANSWER, ("blue",)), Check(PAGE, ("1",), expression="n")), "blue", Verdict.ERROR, None),
        ((Check(URL, (HOST,)),), "", Verdict.ERROR, None),
        # A wrong answer is wrong whatever the page was, and a right one may be all that is asked for.
        ((Check(ANSWER, ("blue",)), Check(PAGE, ("1",), expression="n")), "red", Verdict.FAILURE, 0.0),
        ((Check(ANSWER, ("blue",)),), "blue", Verdict.SUCCESS, 1.0),
    ],
)
async def test_a_page_that_nobody_could_read_is_no_failure(
    checks: tuple[Check, ...], answer: str, verdict: Verdict, reward: float | None
) -> None:
    task = msgspec.structs.replace(builders.task(), checks=checks)
    trajectory = msgspec.structs.replace(builders.trajectory(task, outcome=Outcome.ANSWERED), answer=answer, final_state=None)
    ruling = await EnvironmentJudge().judge(builders.judged_episode(trajectory))
    assert (ruling.verdict, ruling.reward) == (verdict, reward)


@pytest.mark.anyio
async def test_a_pattern_that_runs_out_of_time_is_no_verdict_and_names_its_task() -> None:
    check = Check(ANSWER, ("(a|aa)+$",), PATTERN)
    task = msgspec.structs.replace(builders.task("slow"), checks=(check,))
    trajectory = msgspec.structs.replace(builders.trajectory(task, outcome=Outcome.ANSWERED), answer="a" * 80 + "b")
    with pytest.raises(JudgeError, match=r"task slow: searching for the pattern .* took longer than 1 s"):
        await EnvironmentJudge().judge(builders.judged_episode(trajectory))
