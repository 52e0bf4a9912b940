"""What `webarena_verified_v1` makes of answers, records and findings. The benchmark's package is scripted here;
`tests/integration/test_webarena_verified.py` asks the real one."""

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents.answer_forms import answer_form
from agents.values import spoken
from judges.judge import Ruling
from judges.named.webarena_verified_v1 import NAME
from judges.webarena.answer import STATUSES, TASK_TYPES, NoResponse, read_response
from judges.webarena.evaluation import Evaluation
from judges.webarena.examiner import VERSION, Finding, NoFinding
from judges.webarena.judge import WebArenaVerifiedJudge
from schemas.errors import NoVerdict
from schemas.messages import Outcome, Verdict
from tests import builders
from tests.support.judging.webarena import answers, evaluated, played, post, recorded, sends, visit

pytestmark = pytest.mark.anyio
RIGHT = json.dumps({"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["Dragon"], "error_details": None})
ASKED = evaluated(answers(data=["Dragon"]))
SENT = evaluated(answers("mutate"), sends("__SHOPPING__/cart/add", http_method="POST"))
SEEN = evaluated(answers("navigate"), sends("__SHOPPING__/kites"))
Script = Callable[[Evaluation, Mapping[str, Any]], Sequence[Finding] | str]


class Scripted:
    """Satisfies `Examiner`; a text is no finding, for this reason."""

    def __init__(self, script: Script | None = None) -> None:
        self._script = script or (lambda evaluation, _: [Finding(name, "success") for name in evaluation.evaluators])
        self.asked: list[tuple[list[str], Mapping[str, Any], int]] = []

    async def examine(
        self, evaluation: Evaluation, response: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], instruction: str
    ) -> tuple[Finding, ...]:
        self.asked.append((evaluation.evaluators, response, len(entries)))
        found = self._script(evaluation, response)
        if isinstance(found, str):
            raise NoFinding(found)
        return tuple(found)


async def ruling(episode: Any, examiner: Scripted | None = None) -> Ruling:
    return await WebArenaVerifiedJudge(NAME, examiner or Scripted()).judge(episode)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("", "there is no final answer"),
        ("  \n", "there is no final answer"),
        ("The Dragon.", "is no JSON"),
        (RIGHT[:-20], "is no JSON"),
        ("[1]", "is no JSON object"),
        ("{}", "is no JSON object"),
        ("null", "is no JSON object"),
        ('"SUCCESS"', "is no JSON object"),
        ("```json\nnot json\n```", "is no JSON"),
        ("[" * 100_000, "too deep"),
        ('{"status": 5}', "status is 5, which is no text: write SUCCESS, "),
        ('{"task_type": ["RETRIEVE"], "status": "SUCCESS"}', "task_type is"),
        ('{"status": null}', "status is null"),
        (f'{{"a": "{"x" * 100_001}"}}', "write at most 100,000"),
    ],
)
async def test_an_answer_without_the_form_is_a_failure_with_its_reason(answer: str, said: str) -> None:
    examiner = Scripted()
    found = await ruling(played(ASKED, answer), examiner)
    assert (found.verdict, found.reward, examiner.asked) == (Verdict.FAILURE, 0.0, [])
    assert found.stages[0].stage == "response"
    assert said in found.stages[0].reasoning


@pytest.mark.parametrize("answer", [RIGHT, f" {RIGHT}\n", f"Here it is:\n```json\n{RIGHT}\n```\nDone.", f"```\n{RIGHT}```"])
def test_an_answer_may_stand_in_a_fenced_block(answer: str) -> None:
    assert read_response(answer)["retrieved_data"] == ["Dragon"]


def test_the_form_that_policies_are_told_has_every_word_of_it() -> None:
    told = answer_form("webarena_verified")
    assert all(f'"{word}"' in told for word in (*TASK_TYPES, *STATUSES))
    assert set(read_response(told.partition("Example: ")[2])) == {"task_type", "status", "retrieved_data", "error_details"}
    assert answer_form("text") == ""


def test_an_answer_that_is_an_object_is_its_json() -> None:
    assert json.loads(spoken({"status": "SUCCESS", "retrieved_data": ["Ä"]}) or "") == {
        "status": "SUCCESS",
        "retrieved_data": ["Ä"],
    }
    assert (spoken("plain"), spoken(4), spoken({}), spoken([]), spoken(None)) == ("plain", "4", None, None, None)


async def test_all_evaluators_have_to_find_what_they_expect() -> None:
    record = recorded(SENT, [visit("/"), post("/cart/add", "id=3")])
    examiner = Scripted()
    found = await ruling(played(SENT, RIGHT, record), examiner)
    assert (found.verdict, found.reward) == (Verdict.SUCCESS, 1.0)
    assert [stage.stage for stage in found.stages] == ["response", "network_1"]
    assert [num_entries for _, _, num_entries in examiner.asked] == [2]

    def second_fails(evaluation: Evaluation, _: Mapping[str, Any]) -> list[Finding]:
        return [Finding(evaluation.evaluators[0], "success"), Finding(evaluation.evaluators[1], "failure", "no such request")]

    found = await ruling(played(SENT, RIGHT, record), Scripted(second_fails))
    assert (found.verdict, found.reward) == (Verdict.FAILURE, 0.0)
    assert [(stage.passed, stage.reasoning) for stage in found.stages] == [(True, "as expected"), (False, "no such request")]


async def test_without_a_record_a_right_answer_has_no_verdict_and_a_wrong_one_fails() -> None:
    with pytest.raises(NoVerdict, match=r"browser_config\.record_network=true"):
        await ruling(played(SENT, RIGHT))
    wrong = Scripted(lambda evaluation, _: [Finding(evaluation.evaluators[0], "failure", "another status")])
    found = await ruling(played(SENT, RIGHT), wrong)
    assert (found.verdict, wrong.asked[0][0]) == (Verdict.FAILURE, ["AgentResponseEvaluator"])
    assert (await ruling(played(ASKED, RIGHT))).verdict is Verdict.SUCCESS


async def test_a_record_that_is_not_whole_is_no_verdict() -> None:
    record = recorded(SENT, [visit("/"), post("/cart/add", "id=3")], max_entries=1)
    with pytest.raises(NoVerdict, match="is not whole; it lacks 1 requests behind the first 1"):
        await ruling(played(SENT, RIGHT, record))


async def test_an_episode_that_was_begun_again_is_judged_by_its_last_attempt_only_where_that_says_all() -> None:
    with pytest.raises(NoVerdict, match="1 earlier attempts of it were broken off"):
        await ruling(played(SENT, RIGHT, recorded(SENT, [post("/cart/add", "id=3")], attempt=2)))
    absent = evaluated(answers("mutate"), sends("__SHOPPING__/cart", should_not_exist=True))
    with pytest.raises(NoVerdict, match="earlier attempts"):
        await ruling(played(absent, RIGHT, recorded(absent, [visit("/")], attempt=2)))
    found = await ruling(played(SEEN, RIGHT, recorded(SEEN, [visit("/kites")], attempt=2)))
    assert found.verdict is Verdict.SUCCESS
    assert "1 earlier attempts were broken off" in found.stages[1].reasoning


async def test_a_record_that_aged_out_or_is_damaged_is_no_verdict() -> None:
    record = recorded(SEEN, [visit("/kites")])
    with pytest.raises(NoVerdict, match="aged out"):
        await ruling(played(SEEN, RIGHT, record, gone=True))
    damaged = msgspec.structs.replace(record, har=b"x" * len(record.har))
    with pytest.raises(NoVerdict, match="cannot be read"):
        await ruling(played(SEEN, RIGHT, damaged))


async def test_headers_that_no_record_keeps_cannot_be_judged_by() -> None:
    task = evaluated(answers("navigate"), sends("__SHOPPING__/kites", headers={"Cookie": "^.*a=1.*$"}))
    with pytest.raises(NoVerdict, match="compare the header Cookie, which no record keeps"):
        await ruling(played(task, RIGHT, recorded(task, [visit("/kites")])))


@pytest.mark.parametrize(
    ("evaluation", "said"),
    [
        ("", "has no evaluation of WebArena-Verified: prepare it with millrace tasks prepare webarena-verified"),
        ("no json", "cannot be read"),
        ('{"task_id": 1, "sites": {}}', "cannot be read"),
        ('{"task_id": 1, "sites": {}, "eval": [{"evaluator": "Llm"}]}', "has the evaluator Llm"),
        ('{"task_id": 1, "sites": {}, "eval": []}', "has no evaluator of the answer"),
    ],
)
async def test_a_task_without_evaluators_has_no_verdict(evaluation: str, said: str) -> None:
    with pytest.raises(NoVerdict, match=said):
        await ruling(played(msgspec.structs.replace(builders.task(), evaluation=evaluation), RIGHT))


async def test_data_that_the_package_does_not_come_to_an_end_with_is_a_failure_and_its_own_failures_are_not() -> None:
    def hangs(evaluation: Evaluation, response: Mapping[str, Any]) -> Sequence[Finding] | str:
        return "it took more than 20 s" if response["retrieved_data"] else [Finding(evaluation.evaluators[0], "failure")]

    found = await ruling(played(ASKED, RIGHT), Scripted(hangs))
    assert (found.verdict, found.reward) == (Verdict.FAILURE, 0.0)
    assert found.stages[0].reasoning == "the answer's retrieved_data cannot be compared (it took more than 20 s)"

    def erring(evaluation: Evaluation, response: Mapping[str, Any]) -> list[Finding]:
        return [Finding(evaluation.evaluators[0], "error" if response["retrieved_data"] else "failure", "strange data")]

    assert (await ruling(played(ASKED, RIGHT), Scripted(erring))).verdict is Verdict.FAILURE
    always = await ruling(played(ASKED, RIGHT), Scripted(lambda *_: "no such site"))
    assert (always.verdict, always.reward) == (Verdict.ERROR, None)
    assert always.error == "the evaluators of WebArena-Verified failed: no such site"


async def test_no_finding_at_all_is_never_a_success() -> None:
    assert (await ruling(played(ASKED, RIGHT), Scripted(lambda *_: []))).verdict is Verdict.FAILURE


async def test_an_episode_that_ended_without_an_answer_fails() -> None:
    found = await ruling(played(ASKED, "", outcome=Outcome.STEP_LIMIT))
    assert (found.verdict, found.stages[0].reasoning) == (Verdict.FAILURE, "there is no final answer")


def test_responses_that_are_refused_say_what_to_write() -> None:
    with pytest.raises(NoResponse, match=r'write \{"task_type": \.\.\., "status": \.\.\.'):
        read_response("done")


def test_the_extra_pins_the_package_that_the_judge_asks_for() -> None:
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert pyproject["project"]["optional-dependencies"]["webarena"] == [f"webarena-verified=={VERSION}"]
