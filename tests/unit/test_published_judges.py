"""What published evaluators show and ask, in which order, and what decides."""

import json
from collections.abc import Callable

import msgspec
import pytest

from judges.judge import Judge
from judges.rubric.asking import Inquiry, QuestionKind
from schemas.errors import NoVerdict
from schemas.messages import (
    Action,
    ActionEffect,
    ActionKind,
    AskedQuestion,
    Fact,
    JudgeProtocol,
    Observation,
    Screenshot,
    StepRequest,
    Task,
    Verdict,
)
from tests.builders import step_request
from tests.support.judging.published_world import EVALUATORS, PROMPTS, answer, asked_text, decides, published_judge, said
from tests.support.judging.rubric_world import Models, episode, rubric_task, seen

pytestmark = pytest.mark.anyio
NEEDS_ANSWER = ("deepshop_v1", "openwebrl_v1", "webvoyager_v1")
OF = rubric_task(num_facts=0)
CLICK, TYPE = Action(kind=ActionKind.CLICK, point=(1.0, 2.0)), Action(kind=ActionKind.TYPE, text="lamp")
SAY = Action(kind=ActionKind.ANSWER, text="It costs 20 euros.")


def played(number: int) -> tuple[Observation, ...]:
    return seen(OF, [b"%d" % step for step in range(number)])


def acting(*actions: Action) -> list[StepRequest]:
    return [
        msgspec.structs.replace(step_request(OF, step), action=action, thought=f"thought {step}")
        for step, action in enumerate(actions)
    ]


def shown(inquiry: Inquiry) -> list[bytes]:
    return [part.data for part in inquiry.question.content if isinstance(part, Screenshot)]


def deciding(models: Models) -> Inquiry:
    return next(inquiry for inquiry in models.asked if decides(inquiry))


@pytest.mark.parametrize("name", EVALUATORS)
async def test_a_judgement_says_how_it_was_asked_for(name: str) -> None:
    models = Models(answer)
    judge: Judge = published_judge(name, models)
    ruling = await judge.judge(episode(OF, played(2)))
    assert (judge.name, ruling.verdict, ruling.reward) == (name, Verdict.SUCCESS, 1.0)
    asked = tuple(
        AskedQuestion(stage=each.stage, model="fake", temperature=0.0, screenshots=each.screenshots) for each in models.asked
    )
    prompts = PROMPTS[name]
    assert ruling.protocols == (JudgeProtocol(judge=name, prompts=name, digest=prompts.digest, questions=asked),)
    for inquiry in models.asked:
        assert shown(inquiry) == [b"%d" % step for step in inquiry.screenshots]
    assert [usage.num_calls for usage in ruling.usage] == [len(models.asked)]


@pytest.mark.parametrize("name", EVALUATORS)
async def test_a_failure_is_told_with_the_stage_that_decided_last(name: str) -> None:
    models = Models(lambda inquiry: answer(inquiry, passed=not decides(inquiry), reasoning="because"))
    ruling = await published_judge(name, models).judge(episode(OF, played(2)))
    assert (ruling.verdict, ruling.reward) == (Verdict.FAILURE, 0.0)
    assert not ruling.stages[-1].passed
    assert "because" in ruling.stages[-1].reasoning
    assert ruling.stages[-1].evidence == deciding(models).screenshots


@pytest.mark.parametrize("name", EVALUATORS)
async def test_without_an_answer_those_that_look_at_it_fail_and_ask_nobody(name: str) -> None:
    models = Models(answer)
    ruling = await published_judge(name, models).judge(episode(OF, played(2), answer=" \u200b\n"))
    if name in NEEDS_ANSWER:
        assert (ruling.verdict, models.asked, ruling.protocols) == (Verdict.FAILURE, [], ())
        assert ruling.stages[-1].reasoning == "there is no final answer"
    else:
        assert ruling.verdict is Verdict.SUCCESS


@pytest.mark.parametrize("name", EVALUATORS)
async def test_no_verdict_on_any_question_is_none_at_all(name: str) -> None:
    every = Models(answer)
    await published_judge(name, every).judge(episode(OF, played(2)))
    for stage in dict.fromkeys(every.stages):

        def away(inquiry: Inquiry, at: str = stage) -> str | NoVerdict:
            return NoVerdict(f"{at}: the endpoint is away") if inquiry.stage == at else answer(inquiry)

        ruling = await published_judge(name, Models(away)).judge(episode(OF, played(2)))
        assert (ruling.verdict, ruling.reward, ruling.error) == (Verdict.ERROR, None, f"{stage}: the endpoint is away")


@pytest.mark.parametrize("name", EVALUATORS)
async def test_a_chain_that_aged_out_or_showed_nothing_has_no_verdict(name: str) -> None:
    models = Models(answer)
    judge = published_judge(name, models)
    gone = await judge.judge(episode(OF, played(2), gone=True))
    nothing = await judge.judge(episode(OF, ()))
    assert (gone.verdict, nothing.verdict, models.asked) == (Verdict.ERROR, Verdict.ERROR, [])
    assert "aged out" in gone.error
    assert nothing.error == f"episode {OF.episode} has no screenshot to judge it by"


@pytest.mark.parametrize("name", EVALUATORS)
async def test_the_deciding_question_alone_is_voted_on(name: str) -> None:
    votes = "ynn"

    def model(inquiry: Inquiry) -> str:
        return answer(inquiry, passed=not decides(inquiry) or votes[inquiry.vote] == "y", reasoning=f"vote {inquiry.vote}")

    models = Models(model)
    ruling = await published_judge(name, models, num_votes=3).judge(episode(OF, played(1)))
    assert ruling.verdict is Verdict.FAILURE
    assert ruling.stages[-1].votes == (True, False, False)
    assert "vote 1" in ruling.stages[-1].reasoning
    assert [inquiry.vote for inquiry in models.asked if decides(inquiry)] == [0, 1, 2]
    assert {inquiry.vote for inquiry in models.asked if not decides(inquiry)} <= {0}


@pytest.mark.parametrize(
    ("name", "number", "steps"),
    [
        ("agenttrek_v1", 20, (19,)),
        ("openwebrl_v1", 20, (17, 18, 19)),
        ("openwebrl_v1", 2, (0, 1)),
        ("webvoyager_v1", 20, tuple(range(5, 20))),
        ("webvoyager_v1", 3, (0, 1, 2)),
        ("deepshop_v1", 20, tuple(range(5, 20))),
    ],
)
async def test_the_last_screenshots_are_shown_oldest_first(name: str, number: int, steps: tuple[int, ...]) -> None:
    models = Models(answer)
    await published_judge(name, models).judge(episode(OF, played(number)))
    (inquiry,) = models.asked
    assert inquiry.screenshots == steps
    labels = [f"Screenshot {place} of {len(steps)}, taken before step {step}:" for place, step in enumerate(steps, 1)]
    assert [part for part in inquiry.question.content if isinstance(part, str) and part.startswith("Screenshot ")] == labels


async def test_equal_screenshots_are_counted_as_often_as_they_were_seen() -> None:
    models, shots = Models(answer), list(seen(OF, [b"start", b"other bytes", b"lamp"]))
    shots[1] = msgspec.structs.replace(shots[1], same_screenshot=True)
    await published_judge("openwebrl_v1", models).judge(episode(OF, shots))
    assert (models.asked[0].screenshots, shown(models.asked[0])) == ((0, 1, 2), [b"start", b"start", b"lamp"])


# what is told -------------------------------------------------------------------------------------------------------------


async def told(name: str, of: Task = OF) -> str:
    """The text of the deciding question about a click, a text that was typed, a step that could not be read, and an answer."""
    models, steps, observations = Models(answer), acting(CLICK, TYPE, CLICK, SAY), list(played(4))
    steps[2] = msgspec.structs.replace(steps[2], parsed=False, thought="")
    observations[1] = msgspec.structs.replace(observations[1], effect=ActionEffect.CHANGED, hit='button "Lamps"')
    observations[2] = msgspec.structs.replace(observations[2], effect=ActionEffect.REFUSED, error="no field there")
    await published_judge(name, models).judge(episode(of, observations, steps=steps))
    return asked_text(deciding(models))


async def test_agenttrek_is_told_thoughts_and_actions_and_no_answer() -> None:
    text = await told("agenttrek_v1")
    lines = (
        "| step 0, thought: thought 0",
        "| step 0: click at (1, 2)",
        "| step 1, thought: thought 1",
        '| step 1: type "lamp" and Enter',
        "| step 2, thought: (none)",
        "| step 2: nothing that could be read as an action",
    )
    assert "\n".join(lines) in text
    assert "20 euros" not in text
    assert "thought 3" not in text


async def test_webjudge_is_told_actions_alone_and_no_answer() -> None:
    text = await told("webjudge_v1")
    assert '| step 0: click at (1, 2)\n| step 1: type "lamp" and Enter\n| step 2: nothing that could be read' in text
    assert "20 euros" not in text
    assert "thought" not in text.replace("Thoughts", "")


async def test_openwebrl_is_told_actions_with_feedback_and_the_answer() -> None:
    text = await told("openwebrl_v1")
    assert '| step 0: click at (1, 2)\n|     feedback: the page changed; reached button "Lamps"\n| step 1: type' in text
    assert "feedback: it could not be carried out; no field there" in text
    assert '| step 3: answer "It costs 20 euros."' in text
    assert "untrusted text:\n<<<UNTRUSTED" in text
    assert "| It costs 20 euros." in text


@pytest.mark.parametrize("name", ["webvoyager_v1", "deepshop_v1"])
async def test_others_are_told_the_answer_and_no_actions(name: str) -> None:
    text = await told(name)
    assert "| It costs 20 euros." in text
    assert "step 0:" not in text.replace("taken before step 0:", "")


async def test_a_long_history_is_told_from_its_end() -> None:
    models, long = Models(answer), Action(kind=ActionKind.TYPE, text="x" * 590)
    await published_judge("webjudge_v1", models).judge(episode(OF, played(2), steps=acting(*[long] * 150)))
    text = asked_text(deciding(models))
    assert "characters of earlier steps are left out]" in text
    assert "step 149: type" in text
    assert "step 1: type" not in text
    assert len(text) < 64_000


# WebJudge -----------------------------------------------------------------------------------------------------------------


def scoring(score: Callable[[int], int]) -> Callable[[Inquiry], str]:
    """Of each screenshot by its step."""

    def model(inquiry: Inquiry) -> str:
        if inquiry.stage != "screenshot":
            return answer(inquiry)
        (step,) = inquiry.screenshots
        return json.dumps({"reasoning": f"reason {step}\nof two lines", "score": score(step)})

    return model


async def test_webjudge_keeps_screenshots_from_a_score_of_3_on_with_their_reasons() -> None:
    models = Models(scoring(lambda step: (1, 3, 2, 5, 4)[step]))
    ruling = await published_judge("webjudge_v1", models).judge(episode(OF, played(5)))
    assert models.stages == ["key_points", *["screenshot"] * 5, "outcome"]
    assert [inquiry.kind for inquiry in models.asked] == [
        QuestionKind.EVALUATION,
        *[QuestionKind.KEYPOINT] * 5,
        QuestionKind.EVALUATION,
    ]
    assert deciding(models).screenshots == (1, 3, 4)
    assert "| 1. reason 1 of two lines\n| 2. reason 3 of two lines\n| 3. reason 4 of two lines" in asked_text(deciding(models))
    assert [(stage.stage, stage.evidence) for stage in ruling.stages] == [
        ("key_points", ()),
        ("screenshots", (0, 1, 2, 3, 4)),
        ("outcome", (1, 3, 4)),
    ]
    assert ruling.stages[1].reasoning == "scores by step: 0: 1, 1: 3, 2: 2, 3: 5, 4: 4"


async def test_webjudge_takes_a_screenshot_without_a_usable_answer_for_the_least() -> None:
    def model(inquiry: Inquiry) -> str:
        return "" if inquiry.stage == "screenshot" and inquiry.screenshots == (1,) else answer(inquiry)

    models = Models(model)
    ruling = await published_judge("webjudge_v1", models).judge(episode(OF, played(3)))
    assert (ruling.verdict, deciding(models).screenshots) == (Verdict.SUCCESS, (0, 2))
    assert ruling.stages[1].reasoning == (
        "scores by step: 0: 4, 1: 1 (no usable answer), 2: 4; screenshot: no verdict: the answer is empty"
    )


async def test_webjudge_draws_up_key_points_from_the_instruction_alone_and_asks_by_them() -> None:
    models = Models(answer)
    of = rubric_task(num_facts=2, reference="20 euros")
    await published_judge("webjudge_v1", models).judge(episode(of, seen(of, [b"start"])))
    first, *rest = models.asked
    assert first.question.content == ("Instruction: find the price of the lamp\n\nWhat are its key points?",)
    for inquiry in rest:
        assert "Key points:\n1. find the lamp\n2. tell its price" in asked_text(inquiry)
    for inquiry in models.asked:
        assert "fact 1" not in asked_text(inquiry)
        assert "20 euros" not in asked_text(inquiry)


async def test_webjudge_shows_the_first_50_of_those_that_it_keeps() -> None:
    models = Models(scoring(lambda step: 3 + step % 3))
    await published_judge("webjudge_v1", models).judge(episode(OF, played(60)))
    assert deciding(models).screenshots == tuple(range(50))


async def test_webjudge_asks_for_the_outcome_also_where_no_screenshot_was_kept() -> None:
    models = Models(scoring(lambda _: 2))
    ruling = await published_judge("webjudge_v1", models).judge(episode(OF, played(3)))
    assert (ruling.verdict, deciding(models).screenshots) == (Verdict.SUCCESS, ())
    assert "were found to matter" not in asked_text(deciding(models))


async def test_webjudge_asks_the_same_question_about_equal_screenshots() -> None:
    """So that it is asked once: the record of answers knows it again."""
    models = Models(answer)
    await published_judge("webjudge_v1", models).judge(episode(OF, seen(OF, [b"same", b"same"])))
    one, other = (inquiry.question for inquiry in models.asked if inquiry.stage == "screenshot")
    assert one == other


# DeepShop -----------------------------------------------------------------------------------------------------------------


def request(*facts: tuple[str, str]) -> Task:
    return msgspec.structs.replace(OF, facts=tuple(Fact(text, group=group) for group, text in facts))


PARTS = (("Product attributes", "a blue lamp"), ("search filter", "rated 4 stars"), ("sort", "lowest price"))


@pytest.mark.parametrize(
    ("failing", "expected"), [((), Verdict.SUCCESS), (("filters",), Verdict.FAILURE), (("sorting",), Verdict.FAILURE)]
)
async def test_deepshop_judges_every_part_and_all_have_to_hold(failing: tuple[str, ...], expected: Verdict) -> None:
    models, of = Models(lambda inquiry: answer(inquiry, passed=inquiry.stage not in failing)), request(*PARTS)
    ruling = await published_judge("deepshop_v1", models).judge(episode(of, seen(of, [b"start", b"lamp"])))
    assert ruling.verdict is expected
    assert models.stages == ["attributes", "filters", "sorting"][: 2 if "filters" in failing else 3]
    assert [(stage.stage, stage.passed) for stage in ruling.stages[1:]] == [
        (part, part not in failing) for part in models.stages
    ]
    assert "Instruction: rated 4 stars\n" in asked_text(models.asked[1])
    assert "one part of the request, its filters." in asked_text(models.asked[1])
    for unasked in ("find the price", "lowest price", "a blue lamp"):
        assert unasked not in asked_text(models.asked[1]), "the part alone stands in place of the task"


@pytest.mark.parametrize("answer_given", ["20 euros", ""])
async def test_deepshop_has_nothing_to_fail_where_every_part_is_none(answer_given: str) -> None:
    models, of = Models(answer), request(("attribute", "None"), ("filter", " none"), ("sort", ""))
    ruling = await published_judge("deepshop_v1", models).judge(episode(of, seen(of, [b"start"]), answer=answer_given))
    assert (ruling.verdict, models.asked) == (Verdict.SUCCESS, [])
    assert [(stage.stage, stage.passed) for stage in ruling.stages] == [("parts", True)]
    assert "none of the parts" in ruling.stages[0].reasoning


@pytest.mark.parametrize(
    ("facts", "stages"),
    [
        ((("attribute", "a blue lamp"), ("filter", "None"), ("sort", " none ")), ["attributes"]),
        ((("sort", "lowest price"), ("attribute", "blue"), ("attribute", "a lamp")), ["attributes", "sorting"]),
        ((("attribute", "a lamp"), ("", "it is found")), ["parts"]),
        ((("filter and sort", "cheap"),), ["parts"]),
        ((), ["parts"]),
    ],
)
async def test_deepshop_asks_by_the_parts_that_the_facts_name_or_about_all_at_once(
    facts: tuple[tuple[str, str], ...], stages: list[str]
) -> None:
    models, of = Models(answer), request(*facts)
    await published_judge("deepshop_v1", models).judge(episode(of, seen(of, [b"start"])))
    assert models.stages == stages
    assert ("Instruction: blue; a lamp\n" in asked_text(models.asked[0])) == (len(stages) == 2)


# the Universal Verifier ---------------------------------------------------------------------------------------------------

UV = "universal_verifier_v1"


async def test_the_universal_verifier_goes_from_rubric_to_outcome() -> None:
    models = Models(answer)
    ruling = await published_judge(UV, models).judge(episode(OF, played(3)))
    assert models.stages == ["rubric", *["relevance"] * 3, "criterion", "criterion", "side_effects", "outcome"]
    assert models.asked[0].question.content == ("Instruction: find the price of the lamp\n\nWhat is its rubric?",)
    assert [(stage.stage, stage.passed) for stage in ruling.stages] == [
        ("rubric", True),
        ("screenshots", True),
        ("criterion_1", True),
        ("criterion_2", True),
        ("obstacles", True),
        ("side_effects", True),
        ("process", True),
        ("outcome", True),
    ]
    assert ruling.stages[1].reasoning == "scores by step: 0: 5 5, 1: 5 5, 2: 5 5"
    assert ruling.stages[6].reasoning == "4 of 4 points"


async def test_the_universal_verifier_takes_facts_for_its_rubric() -> None:
    models, of = Models(answer), rubric_task(num_facts=2)
    ruling = await published_judge(UV, models).judge(episode(of, seen(of, [b"start"])))
    assert "rubric" not in models.stages
    assert ruling.stages[0].reasoning == "1. fact 1 is shown (lamps)\n2. fact 2 is shown (lamps)"
    assert "Criterion: fact 2 is shown (lamps)\nApplies: always\nPoints: 1" in asked_text(models.asked[2])


async def test_each_criterion_is_shown_the_screenshots_that_tell_most_about_it() -> None:
    def model(inquiry: Inquiry) -> str:
        if inquiry.stage != "relevance":
            return answer(inquiry)
        (step,) = inquiry.screenshots
        return json.dumps({"reasoning": "", "scores": [10 - step, 9 if step == 2 else 1]})

    models = Models(model)
    ruling = await published_judge(UV, models).judge(episode(OF, played(8)))
    criteria = [inquiry for inquiry in models.asked if inquiry.stage == "criterion"]
    assert [inquiry.screenshots for inquiry in criteria] == [(0, 1, 2, 3, 4), (2,)]
    assert [stage.evidence for stage in ruling.stages[2:4]] == [(0, 1, 2, 3, 4), (2,)]
    assert models.asked[-1].screenshots == models.asked[-2].screenshots == (0, 1, 2, 3, 4)


async def test_a_screenshot_whose_relevance_cannot_be_had_tells_nothing() -> None:
    def model(inquiry: Inquiry) -> str:
        return "" if inquiry.stage == "relevance" and inquiry.screenshots == (3,) else answer(inquiry)

    models = Models(model)
    ruling = await published_judge(UV, models).judge(episode(OF, played(6)))
    assert ruling.verdict is Verdict.SUCCESS
    assert {inquiry.screenshots for inquiry in models.asked if inquiry.stage == "criterion"} == {(0, 1, 2, 4, 5)}
    assert "3: 0 0 (no usable answer), 4: 5 5" in ruling.stages[1].reasoning


@pytest.mark.parametrize("process", [True, False])
@pytest.mark.parametrize("outcome", [True, False])
async def test_the_outcome_decides_whatever_the_process_was_worth(process: bool, outcome: bool) -> None:
    models = Models(lambda inquiry: answer(inquiry, passed=outcome if decides(inquiry) else process))
    ruling = await published_judge(UV, models).judge(episode(OF, played(2)))
    assert ruling.verdict is (Verdict.SUCCESS if outcome else Verdict.FAILURE)
    stages = {stage.stage: stage for stage in ruling.stages}
    assert (stages["process"].passed, stages["side_effects"].passed) == (process, process)
    assert stages["process"].reasoning == ("4 of 4 points" if process else "0 of 5 points")
    assert ("Deed that nobody asked for: step 1: a second lamp" in asked_text(deciding(models))) == (not process)


@pytest.mark.parametrize("earned", [{}, {"earned": 0}])
async def test_an_obstacle_excuses_the_process_and_not_the_outcome(earned: dict[str, int]) -> None:
    def model(inquiry: Inquiry) -> str:
        if inquiry.stage == "criterion":
            return json.dumps({**said(inquiry), **earned, "failure": "OBSTACLE", "reasoning": "a human check"})
        return answer(inquiry, passed=not decides(inquiry))

    models = Models(model)
    ruling = await published_judge(UV, models).judge(episode(OF, played(2)))
    stages = {stage.stage: stage for stage in ruling.stages}
    assert (ruling.verdict, ruling.blocked) == (Verdict.FAILURE, False)
    assert (stages["process"].passed, stages["obstacles"].passed) == (True, False)
    assert stages["obstacles"].reasoning == "met at criteria 1, 2"
    assert stages["process"].reasoning == "4 of 4 points"
    assert f"{earned.get('earned', 3)} of 3 points, failure: OBSTACLE. a human check" in asked_text(deciding(models))


async def test_a_criterion_whose_condition_does_not_hold_is_worth_nothing() -> None:
    def model(inquiry: Inquiry) -> str:
        if inquiry.stage == "criterion" and "it has one" in asked_text(inquiry):
            return json.dumps({**said(inquiry), "applies": False, "earned": 0})
        return answer(inquiry)

    ruling = await published_judge(UV, Models(model)).judge(episode(OF, played(2)))
    stages = {stage.stage: stage for stage in ruling.stages}
    assert (stages["criterion_2"].passed, stages["process"].reasoning) == (True, "3 of 3 points")
    assert "does not apply" in stages["criterion_2"].reasoning


async def test_a_process_of_which_nothing_applies_is_no_success() -> None:
    criteria = [{"description": "it is told", "condition": "there is none", "points": 2}]

    def model(inquiry: Inquiry) -> str:
        changed: dict[str, dict[str, object]] = {
            "rubric": {"criteria": criteria},
            "relevance": {"scores": [5]},
            "criterion": {"applies": False, "earned": 0},
        }
        return json.dumps({**said(inquiry), **changed.get(inquiry.stage, {})})

    ruling = await published_judge(UV, Models(model)).judge(episode(OF, played(2)))
    stages = {stage.stage: stage for stage in ruling.stages}
    assert (stages["process"].passed, stages["process"].reasoning) == (False, "0 of 0 points")
    assert ruling.verdict is Verdict.SUCCESS, "the outcome decides"


async def test_a_criterion_without_a_condition_always_applies() -> None:
    def model(inquiry: Inquiry) -> str:
        changed = {"applies": False} if inquiry.stage == "criterion" else {}
        return json.dumps({**said(inquiry), **changed})

    ruling = await published_judge(UV, Models(model)).judge(episode(OF, played(2)))
    assert ruling.verdict is Verdict.ERROR
    assert "applies is False" in ruling.error
