"""What a model may answer a published evaluator, and the verdict that each answer gives: a success only where it is one."""

import json
from collections.abc import Callable, Mapping
from functools import partial

import jsonschema
import msgspec
import pytest

from judges.rubric.asking import Inquiry
from schemas.messages import Fact, Task, Verdict
from tests.support.judging.published_world import EVALUATORS, answer, decides, published_judge, said
from tests.support.judging.rubric_world import Models, episode, rubric_task, seen

pytestmark = pytest.mark.anyio
S, F, E = Verdict.SUCCESS, Verdict.FAILURE, Verdict.ERROR
_PARTS = (Fact("a blue lamp", group="attribute"), Fact("None", group="filter"), Fact("by lowest price", group="sort"))


def _task(name: str, *, facts: bool) -> Task:
    """Of each evaluator that looks at facts both kinds: parts of a shopping request or none, a rubric or none."""
    given = _PARTS if name == "deepshop_v1" else (Fact("the lamp is found"),)
    return msgspec.structs.replace(rubric_task(num_facts=0), facts=given if facts else ())


CASES = [*((name, False) for name in EVALUATORS), ("deepshop_v1", True), ("universal_verifier_v1", True)]


def _spelled(good: str, bad: str) -> Mapping[str, tuple[str, Verdict]]:
    """Answers made of a good one and the other one, and what each comes to."""
    fields, other = json.loads(good), json.loads(bad)
    first, *_, last = fields
    word, wrong = fields[last], other[last]
    if word == wrong:  # Of the parts it is another field that differs.
        last = next(name for name in fields if fields[name] != other[name])
        word, wrong = fields[last], other[last]

    def with_word(said: object) -> str:
        return json.dumps({**fields, last: said})

    backwards = json.dumps(dict(reversed(fields.items())))
    return {
        "the good one": (good, S),
        "the other one": (bad, F),
        "over several lines": (json.dumps(fields, indent=2), S),
        "fields in another order": (backwards, S),
        "white space around it": (f"\n\t {good} \n", S),
        "in a fence": (f"```json\n{good}\n```", S),
        "the other one in a fence": (f"```json\n{bad}\n```", F),
        "behind a thought": (f"<think>It seems done.</think>\n{good}", S),
        "the other one behind a thought that says success": (f"<think>{word}! {word}!</think>{bad}", F),
        "a reasoning that says the other word": (json.dumps({**fields, first: f"not {wrong}, though it looks so"}), S),
        "a failure whose reasoning says success": (json.dumps({**other, first: f"{word}! All of it is {word}."}), F),
        "letters in escapes": (good.replace(json.dumps(word), json.dumps(_escaped(word)).replace("\\\\", "\\")), S),
        "empty": ("", E),
        "white space": (" \n\t", E),
        "the bare word": (word, E),
        "the bare word in quotes": (json.dumps(word), E),
        "a sentence": (f"The task was a {word}.", E),
        "a line of prose": (f"Thoughts: all is there.\nStatus: {word}", E),
        "markdown": (f"**Reasoning**: fine\n\n**Verdict**: {word}", E),
        "markdown around the object": (f"# Verdict\n\n{good}", E),
        "prose before": (f"Here is my verdict: {good}", E),
        "prose behind": (f"{good}\nI hope this helps.", E),
        "a fence without its language": (f"```\n{good}\n```", E),
        "an open fence": (f"```json\n{good}", E),
        "only in a thought": (f"<think>{good}</think>", E),
        "a thought without an end": (f"<think>{good}", E),
        "two thoughts": (f"<think>a</think><think>b</think>{good}", E),
        "a thought that quotes its end": (f"<think>the page says </think> and lies</think>{good}", E),
        "cut off": (good[:-1], E),
        "cut off in the word": (good[: good.rindex(word[-1]) - 1], E),
        "without its beginning": (good[1:], E),
        "both, the good one last": (f"{bad}\n{good}", E),
        "both in a list": (f"[{bad}, {good}]", E),
        "both words": (with_word(f"{wrong} / {word}"), E),
        "both words in a list": (with_word([wrong, word]), E),
        "the field twice": (f'{bad[:-1]}, "{last}": {json.dumps(word)}}}', E),
        "neither word": (with_word("UNCLEAR"), E),
        "an empty word": (with_word(""), E),
        "another case": (with_word(word.swapcase()), E),
        "with a full stop": (with_word(f"{word}."), E),
        "with a space before": (with_word(f" {word}"), E),
        "negated": (with_word(f"NOT {word}" if word != "NOT SUCCESS" else "NOT"), F if wrong == f"NOT {word}" else E),
        "true": (with_word(True), E),
        "one": (with_word(1), E),
        "nothing": (with_word(None), E),
        "look-alike letters": (with_word(word.replace("S", "Ѕ").replace("s", "ѕ")), E),
        "wide letters": (with_word(word.translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})), E),
        "an unseen letter": (with_word(f"{word[:3]}\u200b{word[3:]}"), E),
        "a field too many": (json.dumps({**fields, "confidence": 0.9}), E),
        "a field too few": (json.dumps({last: word}), E),
        "a reasoning that is none": (json.dumps({**fields, first: None}), E),
        "fields in capitals": (json.dumps({name.upper(): value for name, value in fields.items()}), E),
        "inside another object": (json.dumps({"answer": fields}), E),
        "as a string": (json.dumps(good), E),
        "single quotes": (good.replace('"', "'"), E),
        "a comma too many": (f"{good[:-1]},}}", E),
        "a comment": (f"{good} // sure", E),
        "a refusal": ("I'm sorry, but I can't help with evaluating this.", E),
        "a question": (f"Do you want me to answer {word}?", E),
        "a call": (f'<tool_call>{{"name": "verdict", "arguments": {good}}}</tool_call>', E),
    }


def _escaped(word: str) -> str:
    return f"\\u{ord(word[0]):04x}{word[1:]}"


async def _decided(name: str, facts: bool, model: Callable[[Inquiry], str]) -> tuple[Verdict, Models]:
    models, of = Models(model), _task(name, facts=facts)
    ruling = await published_judge(name, models).judge(episode(of, seen(of, (b"start", b"lamp"))))
    assert (ruling.reward is None) == (ruling.verdict is E)
    assert (ruling.reward == 1.0) == (ruling.verdict is S)
    return ruling.verdict, models


def _saying(text: str, asks: Callable[[Inquiry], bool]) -> Callable[[Inquiry], str]:
    """To the questions that `asks` picks; a good answer to the others."""
    return lambda asked: text if asks(asked) else answer(asked)


@pytest.mark.parametrize(("name", "facts"), CASES)
async def test_every_answer_to_the_deciding_question_gives_its_verdict(name: str, facts: bool) -> None:
    _, models = await _decided(name, facts, answer)
    deciding = next(each for each in models.asked if decides(each))
    cases = _spelled(answer(deciding), answer(deciding, passed=False))
    assert len(cases) >= 40
    found = {case: (await _decided(name, facts, _saying(text, decides)))[0] for case, (text, _) in cases.items()}
    assert found == {case: expected for case, (_, expected) in cases.items()}


@pytest.mark.parametrize(("name", "facts"), CASES)
async def test_what_no_question_takes_ends_in_an_error_wherever_it_is_said(name: str, facts: bool) -> None:
    _, models = await _decided(name, facts, answer)
    for stage in dict.fromkeys(models.stages):
        for text in ("", "SUCCESS", "success", "{}", "[]", "<think>{}</think>", "I cannot do that.", '{"reasoning": "ok"}'):
            found, _ = await _decided(name, facts, _saying(text, partial(_is_of, stage)))
            assert found is E, (stage, text)


def _is_of(stage: str, asked: Inquiry) -> bool:
    return asked.stage == stage


@pytest.mark.parametrize(("name", "facts"), CASES)
async def test_good_answers_keep_to_the_schema_that_is_asked_for(name: str, facts: bool) -> None:
    _, models = await _decided(name, facts, answer)
    for asked in models.asked:
        for passed in (True, False):
            jsonschema.validate(said(asked, passed=passed), dict(asked.question.schema))
        required = asked.question.schema["required"]
        assert isinstance(required, list)
        assert required[0] in ("reasoning", "thoughts")


async def _with_field(name: str, schema: str, **changed: object) -> Verdict:
    def model(asked: Inquiry) -> str:
        return json.dumps({**said(asked), **changed}) if asked.question.schema_name == schema else answer(asked)

    found, _ = await _decided(name, False, model)
    return found


@pytest.mark.parametrize("score", [0, 6, -1, 3.0, "4", "4/5", True, None, [4], 10**30])
async def test_a_score_that_is_none_is_an_error(score: object) -> None:
    assert await _with_field("webjudge_v1", "screenshot_score", score=score) is E


@pytest.mark.parametrize(
    "key_points", [[], "find the lamp", None, [""], ["find", None], ["find", 1], [["find"]], {"1": "find"}, ["x"] * 51]
)
async def test_key_points_that_are_none_are_an_error(key_points: object) -> None:
    assert await _with_field("webjudge_v1", "key_points", key_points=key_points) is E


@pytest.mark.parametrize(
    "scores", [[], [5], [5, 5, 5], [5, 11], [5, -1], [5, None], [5, True], [5, 5.0], "55", {"1": 5}, None]
)
async def test_scores_of_another_number_or_range_are_an_error(scores: object) -> None:
    assert await _with_field("universal_verifier_v1", "screenshot_relevance", scores=scores) is E


@pytest.mark.parametrize(
    "criteria",
    [
        [],
        None,
        "the lamp is found",
        ["the lamp is found"],
        [{"description": "a", "points": 1}],
        [{"description": "", "condition": "", "points": 1}],
        [{"description": "a", "condition": None, "points": 1}],
        [{"description": "a", "condition": "", "points": 0}],
        [{"description": "a", "condition": "", "points": 11}],
        [{"description": "a", "condition": "", "points": "1"}],
        [{"description": "a", "condition": "", "points": 1, "earned": 1}],
        [{"description": "a", "condition": "", "points": 1}] * 21,
    ],
)
async def test_a_rubric_that_is_none_is_an_error(criteria: object) -> None:
    assert await _with_field("universal_verifier_v1", "rubric", criteria=criteria) is E


@pytest.mark.parametrize(
    "credit",
    [
        {"earned": 99},
        {"earned": -1},
        {"earned": "3"},
        {"earned": True},
        {"applies": "true"},
        {"applies": None},
        {"failure": "none"},
        {"failure": "AGENT OBSTACLE"},
        {"earned": 0},
        {"failure": "AGENT"},
    ],
)
async def test_a_credit_that_is_none_or_contradicts_itself_is_an_error(credit: Mapping[str, object]) -> None:
    """The last two: points are missing without a failure, and none in spite of one."""
    assert await _with_field("universal_verifier_v1", "criterion_credit", **credit) is E


@pytest.mark.parametrize("effects", [None, "none", [None], [""], [{"step": 1}], {"1": "a"}])
async def test_side_effects_that_are_no_list_of_texts_are_an_error(effects: object) -> None:
    assert await _with_field("universal_verifier_v1", "side_effects", side_effects=effects) is E


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (("SUCCESS", "SUCCESS", "SUCCESS"), S),
        (("SUCCESS", "NONE", "NONE"), S),
        (("SUCCESS", "SUCCESS", "NOT SUCCESS"), F),
        (("NOT SUCCESS", "NONE", "NONE"), F),
        (("NONE", "NONE", "NONE"), E),
        (("SUCCESS", "SUCCESS", "success"), E),
        (("SUCCESS", "SUCCESS", None), E),
        (("SUCCESS", ["NONE"], "SUCCESS"), E),
        (("SUCCESS", "SUCCESS or NONE", "NONE"), E),
    ],
)
async def test_every_part_of_a_shopping_request_that_is_there_has_to_hold(
    verdicts: tuple[object, object, object], expected: Verdict
) -> None:
    parts = dict(zip(("attributes", "filters", "sorting"), verdicts, strict=True))
    assert await _with_field("deepshop_v1", "part_verdicts", **parts) is expected
