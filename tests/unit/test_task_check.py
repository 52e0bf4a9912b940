"""`millrace tasks check` says all that is wrong with a task file of ours, and what it holds where nothing is."""

import json
from pathlib import Path

import pytest

from ops import cli
from tests.unit.test_task_files import LINE, write

ANSWERED = {**LINE, "definite_answer": "nine"}


def check(*words: object) -> int:
    return cli.main(["tasks", "check", *map(str, words)])


def test_every_error_of_every_line_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pattern = {"kind": "answer", "expected": "(", "match": "pattern"}
    file = write(
        tmp_path,
        {**LINE, "difficulty": "4", "task_name": "", "checks": [pattern, {"kind": "answer"}]},
        "{nope",
        LINE,
        {**LINE, "website": "no-such-suite:page"},
        {**LINE, "task_id": 18, "website": "ftp://a.example"},
        LINE,
    )
    assert check(file) == 1
    said = capsys.readouterr().out
    for what in (
        "line 1, field 'task_name': '' is not a text",
        "line 1, field 'difficulty': '4' is not a whole number",
        "line 1, field 'checks': check 1: expected '(' is not a pattern",
        "check 2: expected holds None",
        "line 2: not valid JSON",
        "line 4, field 'task_id': 17 stands on line 3 already",
        "line 4, field 'website': 'no-such-suite:page' is neither",
        "line 5, field 'website': 'ftp://a.example' is neither a http(s) address nor a page of a suite",
        "line 6, field 'task_id': 17 stands on line 3 already",
        "8 errors, 1 tasks without one",
    ):
        assert what in said, what


def test_suites_are_those_that_there_are_and_those_of_the_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, {**LINE, "website": "maze:small"})
    assert check(file) == 1
    said = capsys.readouterr().out
    assert (
        "'maze:small' is neither a http(s) address nor a page of a suite (demo, frozen_lake, miniwob, shop, sokoban)" in said
    )
    assert check(file, "--suites", "./mine.py:maze") == 0
    for website in ("demo:click_button?seed=3", "frozen_lake:map", "simulated:page"):
        assert check(write(tmp_path, {**LINE, "website": website})) == 0, website


def test_unknown_fields_are_named_with_the_nearest_that_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, {**LINE, "check": []}, {**LINE, "task_id": 18, "check": [], "colour": "red"})
    assert check(file) == 0
    said = capsys.readouterr().out
    assert "field 'check' of 2 tasks (first: line 1) is none that is read; did you mean checks?" in said
    assert "field 'colour' of 1 task (first: line 2) is none that is read\n" in said
    assert check(file, "--strict") == 1


def test_of_many_unknown_fields_those_are_named_that_most_tasks_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [{**LINE, "task_id": number, f"x{number}": 1, "common": 1} for number in range(50)]
    assert check(write(tmp_path, *lines)) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
    assert len(said) == 21
    assert said[0].startswith("warning: field 'common' of 50 tasks")
    assert said[-1] == "warning: and 31 more fields that are none"


def test_what_a_judge_will_miss_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = {**LINE, "task_id": 18, "evaluator_reference": [], "difficulty": 0}
    assert check(write(tmp_path, ANSWERED, bare)) == 0
    said = capsys.readouterr().out
    assert "1 task (first: line 2) of difficulty 0" in said
    assert "1 task (first: line 2) without definite_answer, which others have" in said
    assert "note: 1 task (first: line 2) on the web with neither evaluator_reference, definite_answer nor checks" in said
    assert "judges that ask a model (rubric_v1, the published evaluators) go by the instruction" in said
    bare = {**bare, "difficulty": 3}
    assert check(write(tmp_path, bare), "--strict") == 0, "published benchmarks are such"
    assert check(write(tmp_path, LINE, {**LINE, "task_id": 18, "metadata": {"x": 1}, "benchmark_name": "b"}), "--strict") == 0


def test_a_right_file_is_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        {**ANSWERED, "task_id": number, "difficulty": number, "split": "test", "website": f"https://s{number % 3}.example"}
        for number in range(1, 11)
    ]
    assert check(write(tmp_path, *lines, {**ANSWERED, "distribution": "id"})) == 0
    said = " ".join(capsys.readouterr().out.split())
    for what in (
        "all 11",
        "evaluator_reference 11, definite_answer 11, checks 0",
        "difficulties 3 medium 4, hard 4, easy 3",
        "splits 2 test 10, not said 1",
        "distributions 2 not said 10, id 1",
        "sites 4 s1.example 4, s2.example 3, s0.example 3, example.org 1",
    ):
        assert what in said, what


def test_what_cannot_be_read_is_a_persons_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path / "absent.jsonl") == 78
    assert "absent.jsonl cannot be read" in capsys.readouterr().err
    assert check(write(tmp_path, "")) == 78
    assert "holds no task" in capsys.readouterr().err


def test_nothing_in_a_file_is_obeyed_by_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, {**LINE, "\x1b[2Jfield": 1, "domain": "\x1b[31m[bold]red"}, json.dumps({"task_id": "\x1b[2J"}))
    assert check(file) == 1
    assert "\x1b" not in capsys.readouterr().out
