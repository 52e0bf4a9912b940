"""Published files are read record by record; whatever bytes they hold, a person gets sentences and no traceback."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.tasks.records import records
from schemas.errors import ConfigurationError, TaskFileError
from tests.support.texts.published_tasks import PUBLISHED, write
from trainer.feeding.problems import Unfit
from trainer.feeding.task_checks import read_checks
from trainer.feeding.task_files import read_tasks

SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
ROWS = [{"a": "one", "b": "two, three"}, {"a": 'say "x"', "b": "line\nfeed"}]


def read(file: Path) -> list[tuple[str, object]]:
    return [(record.place, record.fields) for record in records(file)]


@pytest.mark.parametrize(
    ("suffix", "places"),
    [
        (".jsonl", ["line 1", "line 2"]),
        (".json", ["entry 1", "entry 2"]),
        (".csv", ["line 2", "line 4"]),
        (".tsv", ["line 2", "line 4"]),
        (".parquet", ["row 1", "row 2"]),
    ],
)
def test_every_kind_of_file_gives_the_same_records(suffix: str, places: list[str], tmp_path: Path) -> None:
    assert read(write(tmp_path / f"tasks{suffix}", ROWS)) == list(zip(places, ROWS, strict=True))


def test_json_may_be_lines_and_begin_with_a_mark(tmp_path: Path) -> None:
    file = tmp_path / "tasks.json"
    file.write_bytes(b"\xef\xbb\xbf" + b'{"a": 1}\n\n{"a": 2}\n')
    assert read(file) == [("line 1", {"a": 1}), ("line 3", {"a": 2})]
    file.write_bytes(b"\xef\xbb\xbf" + b'[{"a": 1}]')
    assert read(file) == [("entry 1", {"a": 1})]


def test_bytes_that_are_no_text_are_never_replaced(tmp_path: Path) -> None:
    for name, content in (("a.json", b'[{"a": "caf\xe9"}, {"a": 2}]'), ("a.jsonl", b'{"a": "caf\xe9"}\n{"a": 2}\n')):
        file = tmp_path / name
        file.write_bytes(content)
        (_, wrong), (_, right) = read(file)
        assert str(wrong).startswith("not UTF-8 text (")
        assert right == {"a": 2}


def test_inner_nulls_of_parquet_are_those_of_other_rows(tmp_path: Path) -> None:
    file = write(tmp_path / "tasks.parquet", [{"x": {"a": 1}, "y": None}, {"x": {"b": [{"c": 2}]}, "y": "z"}])
    assert read(file) == [("row 1", {"x": {"a": 1}, "y": None}), ("row 2", {"x": {"b": [{"c": 2}]}, "y": "z"})]


def test_a_record_that_cannot_be_read_leaves_the_others(tmp_path: Path) -> None:
    lines = tmp_path / "tasks.jsonl"
    lines.write_bytes(b'{"a": 1}\n\xff\xfe\n{"a": "\\ud83d"\n' + b"[" * 3000 + b'\n{"a": 2}\n')
    found = [fields for _, fields in read(lines)]
    assert [fields for fields in found if not isinstance(fields, Unfit)] == [{"a": 1}, {"a": 2}]
    assert [
        str(fields).split(" (", maxsplit=1)[0].split(";", maxsplit=1)[0] for fields in found if isinstance(fields, Unfit)
    ] == [
        "not UTF-8 text",
        "not valid JSON",
        "lists and objects stand too deep in each other",
    ]
    table = tmp_path / "tasks.csv"
    table.write_text("a,b\n1,2\n3\n5,6\n")
    assert [str(fields) for _, fields in read(table)] == [
        "{'a': '1', 'b': '2'}",
        "1 values for 2 columns",
        "{'a': '5', 'b': '6'}",
    ]
    table.write_bytes(b"a,b\n1,2\n\xff,4\n")
    assert "cannot be read" in str(read(table)[-1][1])


def test_files_that_are_not_what_they_end_in_are_named(tmp_path: Path) -> None:
    for name, content, said in (
        ("a.parquet", b"PAR1 nothing PAR1", "cannot be read as Parquet behind row 0"),
        ("a.json", b"[{]", "is no JSON list of tasks"),
        ("a.csv", b"a,a\n1,2\n", "begins with no line of column names"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigurationError, match=said):
            read(tmp_path / name)


CONTENTS = st.one_of(
    st.binary(max_size=300),
    st.text(alphabet='[]{}:,"ab1\\u\t\n é\x00\r', max_size=200).map(str.encode),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=12,
    ).map(lambda value: json.dumps(value).encode()),
)


def refused(file: Path, content: bytes) -> str:
    """The sentence with which a file is refused, if it is."""
    file.write_bytes(content)
    try:
        for _, fields in read(file):
            assert isinstance(fields, dict | Unfit)
    except ConfigurationError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(content=CONTENTS)
@settings(max_examples=60)
def test_no_bytes_make_a_reader_crash(suffix: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / f"tasks{suffix}"
    said = refused(file, content)
    assert not said or str(file) in said


@given(place=st.integers(0, 2000), byte=st.integers(0, 255))
@settings(max_examples=60)
def test_no_damage_to_a_parquet_file_makes_its_reader_crash(place: int, byte: int, tmp_path: Path) -> None:
    file = write(tmp_path / "tasks.parquet", PUBLISHED["openwebrl"][1])
    content = bytearray(file.read_bytes())
    content[place % len(content)] = byte
    said = refused(file, bytes(content))
    assert not said or str(file) in said


@given(content=CONTENTS)
@settings(max_examples=100)
def test_a_task_file_of_any_bytes_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_bytes(content)
    with pytest.raises(TaskFileError) as caught:
        read_tasks(file)
    assert str(file) in str(caught.value)


@given(pattern=st.text(alphabet="()[]{}*+?|\\^$.,ab19-:=!<>PpuN", max_size=25))
@settings(max_examples=200)
def test_a_pattern_is_read_or_refused_with_a_sentence(pattern: str) -> None:
    said = ""
    try:
        read_checks([{"kind": "answer", "expected": pattern, "match": "pattern"}])
    except Unfit as error:
        said = str(error)
    assert not said or said.startswith("check 1: ")
