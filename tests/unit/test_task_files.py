"""Task files: what is read, and that every mistake is named by file, line and field."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from bus.codec import decode, encode
from schemas.env_config import EnvConfig
from schemas.errors import TaskFileError
from schemas.feeder_config import FeederConfig
from schemas.ids import PolicyVersion, RunName
from schemas.messages import Check, CheckKind, CheckMatch, Fact, Split
from tests.builders import task
from trainer.feeding.curriculum import Slot, task_of
from trainer.feeding.task_files import read_tasks
from trainer.feeding.task_values import decoded, normal_facts, normal_website, worded

LINE: dict[str, object] = {
    "task_id": 17,
    "task_name": "Find the opening hours",
    "domain": "travel",
    "subdomain": "museums",
    "website": "example.org",
    "difficulty": 4,
    "evaluator_reference": ["hours are shown"],
    "definite_answer": None,
}


def write(folder: Path, *lines: dict[str, object] | str) -> Path:
    file = folder / "tasks.jsonl"
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return file


def test_reads_required_and_optional_fields(tmp_path: Path) -> None:
    first, second = read_tasks(
        write(tmp_path, LINE, "", {**LINE, "task_id": "b_2", "attempt_level": 3, "distribution": "id", "definite_answer": 5})
    )
    assert (first.task, first.instruction, first.website) == ("17", "Find the opening hours", "https://example.org")
    assert (first.domain, first.subdomain, first.difficulty) == ("travel", "museums", 4)
    assert first.facts == (Fact(description="hours are shown"),)
    assert (first.reference_answer, first.attempt_level, first.distribution) == (None, 0, "")
    assert (second.task, second.reference_answer, second.attempt_level, second.distribution) == ("b_2", "5", 3, "id")


def test_texts_are_valid_and_a_line_is_bounded(tmp_path: Path) -> None:
    (task,) = read_tasks(write(tmp_path, {**LINE, "task_name": "\x1b[2Jone\r\ntwo\x00", "evaluator_reference": ["a\x9bb"]}))
    assert (task.instruction, task.facts) == ("\ufffd[2Jone\ntwo\ufffd", (Fact(description="a\ufffdb"),))
    with pytest.raises(TaskFileError, match=r"line 1: 300,\d+ characters; write at most 200,000"):
        read_tasks(write(tmp_path, {**LINE, "task_name": "x" * 300_000}))
    with pytest.raises(TaskFileError, match="line 1"):
        read_tasks(write(tmp_path, {**LINE, "task_name": "half \ud83d"}))


@pytest.mark.parametrize(
    ("website", "expected"),
    [
        ("example.org", "https://example.org"),
        ("example.org:8080/a", "https://example.org:8080/a"),
        ("localhost:3000", "https://localhost:3000"),
        ("http://example.org", "http://example.org"),
        ("file:///srv/page.html", "file:///srv/page.html"),
        ("demo:click_button?seed=3", "demo:click_button?seed=3"),
        ("mini-wob:click-test", "mini-wob:click-test"),
    ],
)
def test_websites_get_a_scheme_unless_they_are_of_a_suite(website: str, expected: str) -> None:
    assert normal_website(website) == expected


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("a", [Fact(description="a")]),
        (["a", "b"], [Fact(description="a"), Fact(description="b")]),
        ([{"description": "a", "difficulty": 3}], [Fact(description="a", difficulty=3)]),
        (
            [{"id": 1, "description": "prices", "facts": ["a", {"description": "b", "difficulty": 2}]}],
            [Fact(description="a", group="prices"), Fact(description="b", difficulty=2, group="prices")],
        ),
        ([{"id": 7, "facts": ["a"]}], [Fact(description="a", group="7")]),
        (42, [Fact(description="42")]),
        ({"x": 1}, [Fact(description="{'x': 1}")]),
        (None, []),
        ("", []),
        ([], []),
    ],
)
def test_every_form_of_a_reference_becomes_facts(reference: object, expected: list[Fact]) -> None:
    assert list(normal_facts(reference)) == expected


@pytest.mark.parametrize("difficulty", [True, False, "2", 2.5, None, 2**60])
def test_what_is_no_difficulty_is_1(difficulty: object) -> None:
    (fact,) = normal_facts([{"description": "a", "difficulty": difficulty}])
    assert decode(encode(structs.replace(task(), facts=(fact,)))) == structs.replace(
        task(), facts=(Fact(description="a", difficulty=1),)
    )


@pytest.mark.parametrize("field", sorted(LINE))
def test_a_missing_field_is_named(tmp_path: Path, field: str) -> None:
    file = write(tmp_path, LINE, {key: value for key, value in {**LINE, "task_id": 2}.items() if key != field})
    with pytest.raises(TaskFileError) as caught:
        read_tasks(file)
    assert f"{file}, line 2, field '{field}': it is missing; write " in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("task_id", True, "neither a whole number nor a name"),
        ("task_id", "a b", "use letters, digits"),
        ("task_id", "a" * 100, "use at most 96"),
        ("task_name", "  ", "write one such as 'Find the opening hours'"),
        ("task_name", 3, "not a text"),
        ("website", "", "https://example.org"),
        ("difficulty", "4", "not a whole number"),
        ("difficulty", -1, "not a whole number"),
        ("difficulty", True, "not a whole number"),
        ("attempt_level", 0.5, "not a whole number"),
        ("distribution", 1, "write one such as 'ood'"),
    ],
)
def test_a_wrong_value_is_named_with_what_to_write(tmp_path: Path, field: str, value: object, says: str) -> None:
    file = write(tmp_path, {**LINE, field: value})
    with pytest.raises(TaskFileError) as caught:
        read_tasks(file)
    assert f"{file}, line 1, field '{field}'" in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize(("line", "says"), [("{nope", "not valid JSON"), ("[1]", "not a JSON object")])
def test_a_line_that_is_no_object_is_named(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(TaskFileError, match=rf"line 2: {says}"):
        read_tasks(write(tmp_path, LINE, line))


def test_a_task_id_may_stand_once(tmp_path: Path) -> None:
    with pytest.raises(TaskFileError, match="line 3, field 'task_id': 17 stands on line 1 already"):
        read_tasks(write(tmp_path, LINE, {**LINE, "task_id": 18}, {**LINE, "task_id": "17"}))


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(TaskFileError, match="cannot be read"):
        read_tasks(tmp_path / "absent.jsonl")
    with pytest.raises(TaskFileError, match="holds no task"):
        read_tasks(write(tmp_path, ""))
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(TaskFileError, match="not UTF-8"):
        read_tasks(tmp_path / "binary.jsonl")


def test_checks_are_read(tmp_path: Path) -> None:
    checks = [
        {"kind": "answer", "expected": ["four", 4]},
        {"kind": "url", "expected": "/cart", "match": "contains"},
        {"kind": "page", "expected": 12.5, "match": "number", "expression": "shop.total()"},
    ]
    (spec,) = read_tasks(write(tmp_path, {**LINE, "checks": checks}))
    assert spec.checks == (
        Check(CheckKind.ANSWER, ("four", "4")),
        Check(CheckKind.URL, ("/cart",), CheckMatch.CONTAINS),
        Check(CheckKind.PAGE, ("12.5",), CheckMatch.NUMBER, "shop.total()"),
    )
    (plain,) = read_tasks(write(tmp_path, LINE))
    assert plain.checks == ()


@pytest.mark.parametrize(
    ("checks", "says"),
    [
        ({}, "{} is not a list; write one such as"),
        (["x"], "check 1: 'x' is not an object; write one such as"),
        (
            [{"kind": "answer", "expected": "a"}, {"expected": "a"}],
            "check 2: kind None is unknown; write one of answer, url, page",
        ),
        ([{"kind": "answer", "expected": "a", "match": "like"}], "match 'like' is unknown; write one of equals, contains"),
        ([{"kind": "answer", "expect": "a"}], "unknown key 'expect'; write only kind, expected, match, expression"),
        ([{"kind": "answer"}], "expected holds None; write a text or a number"),
        ([{"kind": "answer", "expected": ""}], "expected holds ''; write a text"),
        ([{"kind": "answer", "expected": []}], "expected is an empty list; write at least one value"),
        ([{"kind": "answer", "expected": True}], "expected holds True; write a text"),
        ([{"kind": "page", "expected": "a"}], "needs an expression; write JavaScript such as 'document.title'"),
        ([{"kind": "url", "expected": "a", "expression": "x"}], "leave it out, or write kind 'page'"),
        ([{"kind": "url", "expected": "/cart", "match": "fuzzy"}], "match 'fuzzy' is for words; write equals, contains or"),
        ([{"kind": "answer", "expected": "%", "match": "fuzzy"}], "'%' holds neither a word nor a number; write equals"),
        ([{"kind": "answer", "expected": "many", "match": "number"}], "'many' is not a number; write one such as 12.5"),
        ([{"kind": "answer", "expected": "(", "match": "pattern"}], "'(' is not a pattern"),
    ],
)
def test_a_wrong_check_is_named_with_what_to_write(tmp_path: Path, checks: object, says: str) -> None:
    with pytest.raises(TaskFileError) as caught:
        read_tasks(write(tmp_path, {**LINE, "checks": checks}))
    assert "line 1, field 'checks': " in str(caught.value)
    assert says in str(caught.value)


def test_all_that_is_wrong_is_said_at_once_up_to_a_number(tmp_path: Path) -> None:
    lines = [{**LINE, "task_id": index, "difficulty": "4", "website": None} for index in range(15)]
    with pytest.raises(TaskFileError) as caught:
        read_tasks(write(tmp_path, LINE, *lines))
    said = str(caught.value).splitlines()
    assert len(said) == 21
    assert said[0].endswith("line 2, field 'website': None is not a text; write one such as 'https://example.org'")
    assert "line 2, field 'difficulty': '4' is not a whole number" in said[1]
    assert said[-1] == "and 10 more"


def test_every_wrong_check_of_a_task_is_said(tmp_path: Path) -> None:
    with pytest.raises(TaskFileError, match=r"check 1: kind None is unknown.*; check 3: 'x' is not an object"):
        read_tasks(write(tmp_path, {**LINE, "checks": [{}, {"kind": "answer", "expected": "a"}, "x"]}))


def test_what_no_message_could_hold_is_refused_and_a_long_value_is_shown_in_short(tmp_path: Path) -> None:
    with pytest.raises(TaskFileError, match="difficulty': 100000000000000000000 is not a whole number"):
        read_tasks(write(tmp_path, {**LINE, "difficulty": 10**20}))
    with pytest.raises(TaskFileError) as caught:
        read_tasks(write(tmp_path, {**LINE, "difficulty": ["long"] * 1000}))
    assert len(str(caught.value)) < 400
    (task,) = read_tasks(write(tmp_path, {**LINE, "evaluator_reference": [{"description": "a", "difficulty": 10**20}]}))
    assert task.facts == (Fact(description="a", difficulty=1),)


def test_the_splits_and_distributions_of_lines_reach_the_message(tmp_path: Path) -> None:
    (spec,) = read_tasks(write(tmp_path, {**LINE, "split": "hard", "distribution": "id"}))
    admitted = task_of(
        Slot(spec, 0, 0), run=RunName("r"), split=Split.EVAL, env=EnvConfig(), feeder=FeederConfig(), version=PolicyVersion(0)
    )
    assert (admitted.split, admitted.published_split, admitted.distribution) == (Split.EVAL, "hard", "id")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(value=_JSON, spelled=st.booleans(), indent=st.sampled_from([None, "\r\n"]))
@example(value={"a\u2028": ["\x85", "\\u0041", "\b\f\r"]}, spelled=True, indent=None)
def test_every_text_of_a_line_is_valid_however_it_is_spelt(value: object, spelled: bool, indent: str | None) -> None:
    text = json.dumps(value, ensure_ascii=spelled, indent=indent)
    assert decoded(text) == worded(json.loads(text))
