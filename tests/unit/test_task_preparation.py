"""`millrace tasks prepare`: every published field is answered, and what is wrong is said of all tasks at once."""

import json
import random
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops import cli
from ops.tasks.benchmarks import NAMES, benchmark
from ops.tasks.mapping import Mapper
from ops.tasks.preparing import Request
from ops.tasks.preparing import prepare as run_preparation
from ops.tasks.selection import Sample, selection_of
from ops.tasks.values import name
from schemas.errors import ConfigurationError
from schemas.messages import Fact
from schemas.text import MOST
from tests.support.texts.published_tasks import OPTIONS, PUBLISHED, publish, write
from trainer.feeding.task_files import TaskSpec, read_tasks

FATAL = 78


def prepare(*words: object) -> int:
    return cli.main(["tasks", "prepare", *map(str, words)])


def prepared(folder: Path, of: str, *words: object) -> list[dict[str, Any]]:
    out = folder / "out.jsonl"
    assert prepare(of, publish(folder, of), "--out", out, *OPTIONS.get(of, ()), *words) == 0
    return [json.loads(line) for line in out.read_text().splitlines()]


def specs(folder: Path, of: str) -> tuple[TaskSpec, ...]:
    prepared(folder, of)
    return read_tasks(folder / "out.jsonl")


# what becomes of published fields -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", NAMES)
def test_every_published_field_is_answered_and_none_is_invented(of: str) -> None:
    mapper = Mapper(benchmark(of))
    for record in PUBLISHED[of][1]:
        mapper.line(record, "")
    assert mapper.unknown == {}
    mapped = {rule.field for rule in benchmark(of).rules}
    alternatives = {
        # The same tasks as its other files have them, and a card's other name for the instruction.
        "openwebrl": {rule.field for rule in benchmark("webgym").rules},
        "online-mind2web": {"task_description"},
    }
    assert mapped - set(mapper.counts) == alternatives.get(of, set())


@pytest.mark.parametrize("of", NAMES)
def test_what_is_prepared_is_right_and_keeps_the_benchmarks_name(of: str, tmp_path: Path) -> None:
    lines = prepared(tmp_path, of)
    assert len(lines) == len(PUBLISHED[of][1])
    assert all(line["benchmark_name"] == (of if of != "webgym" else "invented-live") for line in lines)
    assert cli.main(["tasks", "check", str(tmp_path / "out.jsonl")]) == 0


def test_webgym_is_taken_as_it_is(tmp_path: Path) -> None:
    first, second = specs(tmp_path, "webgym")
    assert (first.task, first.website, first.split, first.distribution) == ("7", "https://www.kites.example", "train", "id")
    assert (first.reference_answer, first.attempt_level, first.difficulty) == (None, 2, 5)
    assert [(fact.group, fact.description) for fact in first.facts] == [
        ("hours", "it opens at 9"),
        ("hours", "it closes at 5"),
    ]
    assert (second.split, second.distribution, second.reference_answer) == ("train", "ood", "the dragon")


def test_openwebrl_is_read_from_parquet_and_from_webgyms_schema(tmp_path: Path) -> None:
    (spec,) = specs(tmp_path, "openwebrl")
    assert (spec.task, spec.instruction, spec.website) == ("webgym-41", "Find a red kite", "https://kites.example/")
    assert (spec.subdomain, spec.split, spec.distribution, spec.difficulty) == ("kites.example", "train", "id", 0)
    (line,) = prepared(tmp_path, "openwebrl")
    assert line["metadata"] == {"published_id": "webgym/41"}
    again = write(tmp_path / "tasks.jsonl", PUBLISHED["webgym"][1])
    assert prepare("openwebrl", again, "--out", tmp_path / "again.jsonl") == 0
    assert [spec.task for spec in read_tasks(tmp_path / "again.jsonl")] == ["7", "8"]


def test_a_prompt_alone_says_what_openwebrl_asks(tmp_path: Path) -> None:
    record = {"prompt": PUBLISHED["openwebrl"][1][0]["prompt"], "metadata": {"task_id": 1, "start_url": "https://a.example"}}
    file = write(
        tmp_path / "tasks.jsonl", [record, {**record, "prompt": [], "metadata": {**record["metadata"], "task_id": 2}}]
    )
    assert prepare("openwebrl", file, "--out", tmp_path / "out.jsonl", "--skip-bad") == 0
    assert [spec.instruction for spec in read_tasks(tmp_path / "out.jsonl")] == ["Find a red kite"]
    told = {**record, "prompt": "?", "metadata": {**record["metadata"], "task": "Find a blue kite"}}
    assert prepare("openwebrl", write(tmp_path / "told.jsonl", [told]), "--out", tmp_path / "out.jsonl") == 0
    assert [spec.instruction for spec in read_tasks(tmp_path / "out.jsonl")] == ["Find a blue kite"]


def test_live_benchmarks_say_where_and_how_hard(tmp_path: Path) -> None:
    (mind,) = specs(tmp_path, "online-mind2web")
    assert (mind.difficulty, mind.subdomain, mind.split, mind.facts) == (4, "shop.kites.example", "test", ())
    assert prepared(tmp_path, "online-mind2web")[0]["metadata"] == {"reference_length": 6}
    world, gaia = specs(tmp_path, "webvoyager")
    assert (world.task, world.subdomain, world.difficulty) == ("Kite-World--3", "Kite World", 0)
    assert (gaia.task, gaia.subdomain, gaia.difficulty, gaia.reference_answer) == ("level2-0", "search.example", 4, "17")


def test_deepshops_parts_are_facts_unless_they_say_none(tmp_path: Path) -> None:
    (spec,) = specs(tmp_path, "deepshop")
    assert spec.facts == (
        Fact(description="a kite", group="attributes of the product"),
        Fact(description="at least 4 stars", group="filters of the search"),
    )
    assert (spec.subdomain, spec.difficulty) == ("Sports", 7)


def test_webarenas_sites_get_the_addresses_and_its_answers_are_references(tmp_path: Path) -> None:
    found, in_vain = specs(tmp_path, "webarena-verified")
    assert (found.website, found.subdomain) == ("http://localhost:7770/kites", "shopping+map")
    assert (found.reference_answer, found.facts, in_vain.reference_answer) == ("Dragon; 4", (), None)
    assert [fact.description for fact in in_vain.facts] == [
        "the answer says that the task cannot be done as asked (NOT_FOUND_ERROR)"
    ]
    line = prepared(tmp_path, "webarena-verified")[0]
    assert line["metadata"]["start_urls"] == ["__SHOPPING__/kites", "__MAP__"]
    evaluation = json.loads(found.evaluation)
    assert evaluation == line["evaluation"]
    assert evaluation["eval"] == PUBLISHED["webarena-verified"][1][0]["eval"]
    assert evaluation["sites"] == {"shopping": "http://localhost:7770", "map": "http://localhost:3030"}
    assert evaluation["traffic"] == {"cookies": [], "bodies": False}


def test_what_webarenas_evaluators_ask_of_the_traffic_is_said(tmp_path: Path) -> None:
    records: Any = json.loads(json.dumps(PUBLISHED["webarena-verified"][1]))
    records[0]["eval"][1]["expected"] |= {"response_cookies": {"flash": "^.*saved.*$"}, "response_content": {"qty": 1}}
    file = write(tmp_path / "webarena-verified.json", records)
    assert prepare("webarena-verified", file, "--out", tmp_path / "out.jsonl", *OPTIONS["webarena-verified"]) == 0
    found, _ = read_tasks(tmp_path / "out.jsonl")
    assert json.loads(found.evaluation)["traffic"] == {"cookies": ["flash"], "bodies": True}


def test_webarenas_parquet_says_the_same(tmp_path: Path) -> None:
    records = PUBLISHED["webarena-verified"][1]
    texts = [
        {**record, "eval": [{**item, "results_schema": json.dumps(item.get("results_schema"))} for item in record["eval"]]}
        for record in json.loads(json.dumps(records).replace("4]", '"4"]'))
    ]
    file = write(tmp_path / "hard.parquet", texts)
    assert prepare("webarena-verified", file, "--out", tmp_path / "out.jsonl", *OPTIONS["webarena-verified"]) == 0
    found, in_vain = read_tasks(tmp_path / "out.jsonl")
    assert (found.reference_answer, found.split, len(in_vain.facts)) == ("Dragon; 4", "hard", 1)
    assert json.loads(found.evaluation)["eval"][0]["results_schema"] == {"type": "array"}


def test_a_rubrics_items_are_facts_and_its_points_are_kept(tmp_path: Path) -> None:
    (spec,) = specs(tmp_path, "webtailbench")
    assert [fact.description for fact in spec.facts] == [
        "Lamp: a blue lamp is shown",
        "if a basket is open: Order: nothing is ordered",
    ]
    assert (spec.website, spec.split, spec.subdomain) == ("https://search.example", "test_v2", "shopping_head")
    assert spec.instruction == "Find a blue lamp\tor a kite"
    kept = json.loads(prepared(tmp_path, "webtailbench")[0]["metadata"]["precomputed_rubric"])
    assert kept["total_max_points"] == 3


def test_a_field_that_is_not_known_is_kept_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [{**PUBLISHED["deepshop"][1][0], "season": "spring"}]
    assert prepare("deepshop", write(tmp_path / "deepshop.jsonl", records), "--out", tmp_path / "out.jsonl") == 0
    assert json.loads((tmp_path / "out.jsonl").read_text())["metadata"]["season"] == "spring"
    said = " ".join(capsys.readouterr().out.split())
    assert "season kept in metadata (not known here) 1" in said
    assert "web_name kept in metadata: the site's name 1" in said


# what is wrong --------------------------------------------------------------------------------------------------------------

GOOD = PUBLISHED["deepshop"][1][0]
LONG = {**GOOD, "id": "h", "filter": ""}
BAD: list[tuple[str, str]] = [
    ("{nope", "line 2: not valid JSON"),
    ("[1]", "line 3: not an object with the fields of one task"),
    (json.dumps({**GOOD, "id": "b", "ques": " "}), "line 4, field 'ques': it is missing; write a text"),
    (json.dumps({**GOOD, "id": "c", "web": None}), "line 5, field 'web': it is missing; say with --website"),
    (
        json.dumps({**GOOD, "id": "d", "web": "ftp://a.example"}),
        "line 6, field 'web': 'ftp://a.example' is no http(s) address",
    ),
    (json.dumps({**GOOD, "id": "e", "difficulty": "grim"}), "line 7, field 'difficulty': 'grim' is none of easy, medium"),
    (json.dumps({**GOOD, "id": "f", "attribute": 3}), "line 8, field 'attribute': 3 is not a text"),
    (json.dumps(GOOD), "line 9, field 'id': Kites--4 stands at line 1 already"),
    (json.dumps({**GOOD, "id": {"x": 1}}), "line 10, field 'id': {'x': 1} is neither a whole number nor a name"),
    (json.dumps({**GOOD, "id": "g", "ques": ["x"], "web": 4}), "line 11, field 'ques': ['x'] is not a text"),
    (json.dumps({**LONG, "filter": "x" * (MOST - len(json.dumps(LONG)))}), "line 12: its line would have"),
]


def with_bad_lines(folder: Path) -> Path:
    file = folder / "deepshop.jsonl"
    file.write_text("\n".join([json.dumps(GOOD), *(line for line, _ in BAD), json.dumps({**GOOD, "id": "z"})]) + "\n\n")
    return file


def test_all_that_is_wrong_is_said_at_once_and_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = with_bad_lines(tmp_path), tmp_path / "out.jsonl"
    out.write_text("older")
    assert prepare("deepshop", file, "--out", out) == FATAL
    said = capsys.readouterr().err
    assert "11 of 13 tasks cannot be prepared, so nothing was written" in said
    for _, what in BAD:
        assert f"{file}, {what}" in said, what
    assert "line 11, field 'web': 4 is not a text" in said, "all that is wrong with one task"
    assert out.read_text() == "older"
    assert {path.name for path in tmp_path.iterdir()} == {"deepshop.jsonl", "out.jsonl"}


def test_bad_tasks_are_left_out_on_demand_and_named_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    assert prepare("deepshop", with_bad_lines(tmp_path), "--out", out, "--skip-bad") == 0
    assert [spec.task for spec in read_tasks(out)] == ["Kites--4", "z"]
    said = capsys.readouterr().out
    assert "11 left out:" in said
    assert "2 tasks in" in said


def test_of_many_problems_the_first_are_shown_with_the_number_of_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "deepshop.jsonl"
    file.write_text("{\n" * 1000)
    assert prepare("deepshop", file, "--out", tmp_path / "out.jsonl") == FATAL
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 22
    assert said[-1] == "and 980 more"


def test_ids_are_unique_over_all_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (write(tmp_path / name, PUBLISHED["webgym"][1]) for name in ("train.jsonl", "test.jsonl"))
    assert prepare("webgym", first, second, "--out", tmp_path / "out.jsonl") == FATAL
    assert f"{second}, line 1, field 'task_id': 7 stands at line 1 of {first} already" in capsys.readouterr().err


def test_a_site_of_ones_own_has_to_have_an_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = publish(tmp_path, "webarena-verified")
    assert prepare("webarena-verified", file, "--out", tmp_path / "out.jsonl", "--address", "SHOPPING=localhost:1") == FATAL
    said = capsys.readouterr().err
    assert "entry 2, field 'start_urls': '__MAP__' stands for a site of yours" in said
    assert "--address MAP=http://host:port" in said
    assert "entry 1, field 'eval': it compares addresses of the site map" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--difficulty", "4-2"), "--difficulty 4-2 is none of easy, medium, hard, unknown"),
        (("--split", "none-such"), "no task is left of 2"),
        (("--address", "SHOPPING"), "--address SHOPPING names no site"),
        (("--website", "demo:page"), "demo:page is no http(s) address"),
    ],
)
def test_what_cannot_be_asked_for_is_said(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prepare("webgym", publish(tmp_path, "webgym"), "--out", tmp_path / "out.jsonl", *words) == FATAL
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()


def test_files_that_cannot_be_used_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = publish(tmp_path, "webgym")
    (tmp_path / "tasks.txt").write_text("x")
    for file, out, said in (
        (tmp_path / "absent.jsonl", "out.jsonl", "absent.jsonl cannot be read (No such file"),
        (tmp_path / "tasks.txt", "out.jsonl", "ends in none of .jsonl, .json, .csv, .tsv, .parquet"),
        (train, "absent/out.jsonl", "cannot be written (No such file"),
        (train, "train.jsonl/out.jsonl", "cannot be written (Not a directory"),
        (train, "train.jsonl", "is one of the files to prepare"),
    ):
        assert prepare("webgym", file, "--out", tmp_path / out) == FATAL
        assert said in capsys.readouterr().err


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(of=st.sampled_from(NAMES), values=st.data())
@settings(max_examples=150)
def test_whatever_published_fields_hold_a_task_is_prepared_or_refused(of: str, values: st.DataObject, tmp_path: Path) -> None:
    record = dict(PUBLISHED[of][1][0])
    for field in values.draw(st.sets(st.sampled_from(sorted(record)), min_size=1, max_size=3)):
        record[field] = values.draw(_VALUES)
    file, out = tmp_path / "tasks.jsonl", tmp_path / "out.jsonl"
    file.write_text(json.dumps(record))
    request = Request(benchmark=benchmark(of), files=(file,), out=out, addresses={"SHOPPING": "http://localhost"})
    try:
        anyio.run(run_preparation, request)
    except ConfigurationError as error:
        refused = str(error)
    else:
        refused = ""
        assert len(read_tasks(out)) == 1
    assert not refused or f"{file}, line 1" in refused


# selection ------------------------------------------------------------------------------------------------------------------


def many(folder: Path, number: int) -> Path:
    def task(index: int) -> dict[str, Any]:
        website = ("https://a.example", "https://www.b.example/x")[index % 2]
        return {
            **PUBLISHED["webgym"][1][1],
            "task_id": index,
            "difficulty": index % 10,
            "website": website,
            "distribution": "id" if index % 3 else "ood",
        }

    return write(folder / "test.jsonl", [task(index) for index in range(number)])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--site", "b.example"), [index for index in range(20) if index % 2]),
        (("--difficulty", "hard"), [7, 8, 9, 17, 18, 19]),
        (("--difficulty", "unknown,3-4"), [0, 3, 4, 10, 13, 14]),
        (("--distribution", "ood", "--difficulty", "6"), [6]),
        (("--split", "test", "--site", "www.a.example", "--difficulty", "2"), [2, 12]),
    ],
)
def test_tasks_are_selected(words: tuple[str, ...], expected: list[int], tmp_path: Path) -> None:
    assert prepare("webgym", many(tmp_path, 20), "--out", tmp_path / "out.jsonl", *words) == 0
    assert [int(spec.task) for spec in read_tasks(tmp_path / "out.jsonl")] == expected


def test_a_sample_is_drawn_from_what_is_selected_by_its_seed_in_order(tmp_path: Path) -> None:
    file = many(tmp_path, 200)

    def drawn(seed: int, size: int = 7) -> list[int]:
        out = tmp_path / "out.jsonl"
        assert prepare("webgym", file, "--out", out, "--site", "a.example", "--sample", size, "--seed", seed) == 0
        return [int(spec.task) for spec in read_tasks(out)]

    assert drawn(1) == drawn(1) == sorted(drawn(1))
    assert len(set(drawn(1))) == 7
    assert drawn(1) != drawn(2)
    assert all(index % 2 == 0 for index in drawn(3))
    assert drawn(1, size=1000) == list(range(0, 200, 2)), "all there are"


def test_every_line_is_as_likely_in_a_sample_as_another() -> None:
    times = dict.fromkeys(range(10), 0)
    for seed in range(2000):
        sample = Sample(3, seed)
        for number in times:
            sample.add(bytes([number]))
        for (number,) in sample.lines():
            times[number] += 1
    # 600 each; the standard deviation of a binomial of 2,000 and 0.3 is 20.5.
    assert all(500 < number < 700 for number in times.values())


def test_ids_become_names_that_stay_apart() -> None:
    assert name("BBC News--9") == "BBC-News--9"
    long = ["x" * 200 + str(random.Random(seed).random()) for seed in range(2)]
    assert all(len(str(name(each))) <= 96 for each in long)
    assert name(long[0]) != name(long[1])
    assert name(17) == 17


def test_selections_without_words_take_all() -> None:
    assert selection_of() == selection_of(splits=" , ", sites=",")
    with pytest.raises(ConfigurationError, match="write some such as easy,4-6"):
        selection_of(difficulties="-3")
