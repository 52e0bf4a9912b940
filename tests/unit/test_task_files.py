"""Task files: what is read, and that every mistake is named by file, line and field."""

import json
from pathlib import Path

import pytest

from schemas.errors import TaskFileError
from schemas.messages import Check, CheckKind, CheckMatch, Fact
from trainer.feeding.task_files import normal_facts, normal_website, read_tasks

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
    assert (first.reference_answer, first.attempt_level, first.distribution) == (None, 0, "ood")
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
