"""Labels of people in the files that benchmarks publish."""

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ops.analysis.calibration.comparison import Truth, compare
from ops.analysis.calibration.display import side_by_side
from ops.analysis.calibration.published_labels import TaskLabel, of_episodes, read_published
from ops.analysis.calibration.report import Calibration
from schemas.errors import ConfigurationError
from schemas.ids import EpisodeId
from schemas.messages import Outcome
from tests.builders import judgement, task, trajectory


def written(folder: Path, *rows: dict[str, Any], lines: bool = False) -> Path:
    path = folder / "human_label.json"
    path.write_text("\n".join(map(json.dumps, rows)) if lines else json.dumps(rows))
    return path


def labelled(task_id: str, **labels: object) -> dict[str, Any]:
    return {
        "task_id": task_id,
        "confirmed_task": "find it",
        **{f"{agent}_human_label": label for agent, label in labels.items()},
    }


def test_online_mind2web_labels_each_task_for_each_agent(tmp_path: Path) -> None:
    path = written(
        tmp_path, labelled("a", Operator="1", SeeAct="0"), labelled("b", Operator="2", SeeAct=1), labelled("c", Operator=0)
    )
    assert read_published(path, "Operator") == {
        "a": TaskLabel(True),
        "b": TaskLabel(None, "could not be executed"),
        "c": TaskLabel(False),
    }
    assert read_published(path, "SeeAct") == {"a": TaskLabel(False), "b": TaskLabel(True)}


@pytest.mark.parametrize("agent", [None, "Agent-E"])
def test_of_several_agents_one_has_to_be_named(tmp_path: Path, agent: str | None) -> None:
    path = written(tmp_path, labelled("a", Operator="1", SeeAct="0"))
    with pytest.raises(ConfigurationError, match=r"has labels of Operator, SeeAct, .*: write one of these with --agent"):
        read_published(path, agent)


def test_the_only_agent_need_not_be_named(tmp_path: Path) -> None:
    assert read_published(written(tmp_path, labelled("a", Operator="1")), None) == {"a": TaskLabel(True)}


def test_cuaverifierbench_has_a_label_for_each_task_or_one_of_each_reviewer(tmp_path: Path) -> None:
    final = written(
        tmp_path,
        *({"task_id": each, "final_human_outcome_label": given} for each, given in zip("abc", (1, 0, None), strict=True)),
    )
    assert read_published(final, None) == {"a": TaskLabel(True), "b": TaskLabel(False), "c": TaskLabel(None)}
    votes = [
        ("a", "Correct"),
        ("a", "Correct"),
        ("b", "Incorrect"),
        ("c", "Correct"),
        ("c", "Incorrect"),
        ("d", "Correct"),
        ("d", "partial"),
    ]
    reviewed = written(tmp_path, *({"task_id": each, "human_judgement_outcome": vote} for each, vote in votes), lines=True)
    assert read_published(reviewed, None) == {
        "a": TaskLabel(True, "2 of 2 reviewers: correct"),
        "b": TaskLabel(False, "0 of 1 reviewers: correct"),
        "c": TaskLabel(None, "1 of 2 reviewers: correct"),
        "d": TaskLabel(None, "1 of 2 reviewers: correct"),
    }


@pytest.mark.parametrize("column", ["final_human_outcome_label", "human_judgement_outcome"])
def test_an_agent_that_labels_do_not_name_is_refused(tmp_path: Path, column: str) -> None:
    path = written(tmp_path, {"task_id": "a", column: 1})
    with pytest.raises(ConfigurationError, match="has no labels by agent: leave --agent Operator out"):
        read_published(path, "Operator")


def test_its_parquet_files_are_read_alone_or_as_a_folder(tmp_path: Path) -> None:
    for number, (each, given_label) in enumerate({"a": 1, "b": 0}.items()):
        columns = {"task_id": [each], "final_human_outcome_label": [given_label], "screenshots": [[b"png"]]}
        pq.write_table(pa.table(columns), tmp_path / f"internal-{number}.parquet")
    (tmp_path / "README.md").write_text("a data set")
    assert read_published(tmp_path / "internal-1.parquet", None) == {"b": TaskLabel(False)}
    assert read_published(tmp_path, None) == {"a": TaskLabel(True), "b": TaskLabel(False)}


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([labelled("a", Operator="3")], "task a: the label is '3': write 0"),
        ([labelled("a", Operator=None)], "task a: the label is None"),
        ([labelled("a", Operator="1"), labelled("a", Operator="1")], "task a is labelled twice"),
        ([{"task_id": "a", "final_human_outcome_label": 2}], "task a: final_human_outcome_label is 2"),
        ([{"task_id": "a", "human_judgement_outcome": ""}], "is nowhere Correct or Incorrect"),
    ],
)
def test_a_wrong_label_is_named(tmp_path: Path, rows: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        read_published(written(tmp_path, *rows), None)


@pytest.mark.parametrize("name", ["none.parquet", "empty.parquet", "other.parquet", "none.json", "folder"])
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty.parquet").write_bytes(b"")
    pq.write_table(pa.table({"task_id": ["a"], "answer": ["x"]}), tmp_path / "other.parquet")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigurationError, match=name):
        read_published(tmp_path / name, None)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "null", "1", '{"episode": "a", "success": true}', '[{"task": "a"}]', '{"task_id": "a"}', "[" * 100_000],
)
def test_a_file_of_another_kind_is_none_of_these(tmp_path: Path, text: str) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(text)
    assert read_published(path, None) is None


@given(st.binary(max_size=200))
def test_no_bytes_whatever_are_labels_or_a_traceback(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("labels") / "labels"
    path.write_bytes(data)
    assert read_published(path, None) is None


def test_a_label_is_that_of_the_tasks_only_finished_episode() -> None:
    cut_short = msgspec.structs.replace(task("a"), episode=EpisodeId("train-r0000-a-m1"))
    played = [trajectory(task("a")), trajectory(task("b")), trajectory(cut_short, outcome=Outcome.CANCELLED)]
    found = of_episodes({"a": TaskLabel(True, "seen"), "elsewhere": TaskLabel(False)}, played)
    assert {name: (each.success, each.note) for name, each in found.items()} == {
        "train-r0000-a-m0": (True, "seen"),
        "elsewhere": (False, ""),
    }
    again = trajectory(msgspec.structs.replace(task("a"), episode=EpisodeId("train-r0000-a-m2")))
    with pytest.raises(ConfigurationError, match=r"1 labelled tasks were played to an end more than once \(a\)"):
        of_episodes({"a": TaskLabel(True)}, [*played, again])


def test_several_judges_stand_side_by_side() -> None:
    truths = {
        EpisodeId(f"train-r0000-{name}-m0"): Truth.labelled(success)
        for name, success in zip("abcd", (True, True, False, False), strict=True)
    }

    def calibrated(rubric: str, *rewards: float) -> Calibration:
        ruled = {
            episode: judgement(trajectory(task(name)), reward, rubric=rubric)
            for name, episode, reward in zip("abcd", truths, rewards, strict=True)
        }
        return Calibration(
            source="runs/mine",
            rubric=rubric,
            truth="labels",
            comparison=compare(truths, ruled),
            other_spending=None,
            unknown=(),
        )

    output = io.StringIO()
    table = side_by_side([calibrated("webjudge_v1", 1, 1, 0, 0), calibrated("agenttrek_v1", 1, 1, 1, 0)])
    Console(file=output, width=140).print(table)
    lines = [line.split() for line in output.getvalue().splitlines()]
    assert lines[1] == ["webjudge_v1", "4", "1.000", "1.000", "1.000", "1.000", "2", "0", "0", "2", "0", "0.0000"]
    assert lines[2] == ["agenttrek_v1", "4", "0.750", "0.500", "0.667", "1.000", "2", "1", "0", "1", "0", "0.0000"]
