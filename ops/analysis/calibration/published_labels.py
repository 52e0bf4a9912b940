"""Labels of people as benchmarks publish them: a label is of one agent's trajectory of a task.

- Online-Mind2Web (`human_label.json`): a list of objects with `task_id` and, for each agent, `<agent>_human_label`: "0" is a
  failure, "1" a success, "2" could not be executed, which says nothing about a judge.
- CUAVerifierBench: rows with `task_id` and `final_human_outcome_label` (config `trajectories`), or with `task_id` and
  `human_judgement_outcome`, one a reviewer, of which more than half decide (config `annotations`). Parquet files, a folder of
  them, or JSON lines.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ops.labels.label_file import Label, lines_of
from schemas.errors import ConfigurationError
from schemas.ids import EpisodeId
from schemas.messages import Trajectory

_TASK = "task_id"
_OF_AGENT = "_human_label"
_FINAL, _REVIEWED = "final_human_outcome_label", "human_judgement_outcome"
_NAMED = 5
_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TaskLabel:
    success: bool | None
    """None: it says nothing."""
    note: str = ""


def read_published(path: Path, agent: str | None) -> Mapping[str, TaskLabel] | None:
    """By task, in the order of the file; None: it is no file of these benchmarks.

    Raises:
        ConfigurationError: it cannot be read, an entry is wrong, it has labels of several agents and `agent` names none, or
            `agent` names one and its labels are of none.
    """
    rows = _rows(path)
    if not rows:
        return None
    names = {name for row in rows for name in row}
    if _FINAL in names or _REVIEWED in names:
        refuse_agent(path, agent)
        return _once(path, rows, lambda row: _final(row.get(_FINAL))) if _FINAL in names else _majorities(path, rows)
    if agents := sorted(name.removesuffix(_OF_AGENT) for name in names if name.endswith(_OF_AGENT)):
        column = _chosen(path, agents, agent) + _OF_AGENT
        return _once(path, [row for row in rows if column in row], lambda row: _of_agent(row[column]))
    return None


def of_episodes(labels: Mapping[str, TaskLabel], trajectories: Iterable[Trajectory]) -> dict[EpisodeId, Label]:
    """Each task's label as that of its only finished episode; those of no episode carry the task's name.

    Raises:
        ConfigurationError: a labelled task has several finished episodes, and which was labelled cannot be known.
    """
    episodes: dict[str, list[EpisodeId]] = {}
    for trajectory in trajectories:
        if trajectory.outcome.finished:
            episodes.setdefault(trajectory.task.task, []).append(trajectory.episode)
    if several := [task for task in labels if len(episodes.get(task, ())) > 1]:
        raise ConfigurationError(
            f"{len(several)} labelled tasks were played to an end more than once ({_some(several)}), and the labels do not "
            "say which episode they are of: write JSON lines with episode and success, as --template does"
        )
    named = ((episodes.get(task, [EpisodeId(task)])[0], label) for task, label in labels.items())
    return {episode: Label(episode, label.success, label.note) for episode, label in named}


def refuse_agent(path: Path, agent: str | None) -> None:
    """Raises `ConfigurationError` where one is named for labels that are of no agent."""
    if agent is not None:
        raise ConfigurationError(f"{path} has no labels by agent: leave --agent {agent} out")


def _rows(path: Path) -> Sequence[_Row]:
    """Objects with a task; none where the file is of another kind."""
    if path.is_dir() or path.suffix == ".parquet":
        return _parquet_rows(path)
    try:
        text = path.read_bytes()
        is_list = text.lstrip().startswith(b"[")
        found = msgspec.json.decode(text) if is_list else [msgspec.json.decode(line) for _, line in lines_of(text)]
    except OSError as error:
        raise ConfigurationError(f"the labels {path} cannot be read ({error.strerror}): name a file of labels") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    rows = [row for row in found if isinstance(row, dict) and _TASK in row]
    return rows if len(rows) == len(found) else ()


def _parquet_rows(path: Path) -> Sequence[_Row]:
    """Without the columns that no label needs: screenshots stand among them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    rows: list[_Row] = []
    try:
        for file in files:
            wanted = [name for name in pq.read_schema(file).names if name in (_TASK, _FINAL, _REVIEWED)]
            rows += pq.read_table(file, columns=wanted).to_pylist() if len(wanted) > 1 else []
    except (OSError, pa.ArrowException) as error:
        raise ConfigurationError(f"the labels {path} cannot be read ({error}): name CUAVerifierBench's files") from error
    if not rows:
        raise ConfigurationError(f"{path} holds no Parquet file with {_TASK} and {_FINAL} or {_REVIEWED}: name one that does")
    return rows


def _once(path: Path, rows: Iterable[_Row], read: Callable[[_Row], TaskLabel]) -> dict[str, TaskLabel]:
    labels: dict[str, TaskLabel] = {}
    for row in rows:
        task = str(row[_TASK])
        if task in labels:
            raise ConfigurationError(f"{path}: task {task} is labelled twice: keep one of the two")
        try:
            labels[task] = read(row)
        except ValueError as error:
            raise ConfigurationError(f"{path}, task {task}: {error}") from error
    return labels


def _final(given: object) -> TaskLabel:
    if given is None:
        return TaskLabel(None)
    if given not in (0, 1):
        raise ValueError(f"{_FINAL} is {given!r}: write 0 or 1, or leave it empty")
    return TaskLabel(given == 1)


def _of_agent(given: object) -> TaskLabel:
    match str(given):
        case "0":
            return TaskLabel(False)
        case "1":
            return TaskLabel(True)
        case "2":
            return TaskLabel(None, "could not be executed")
    raise ValueError(f"the label is {given!r}: write 0 (failure), 1 (success) or 2 (could not be executed)")


def _majorities(path: Path, rows: Iterable[_Row]) -> dict[str, TaskLabel]:
    votes: dict[str, Counter[str]] = {}
    for row in rows:
        votes.setdefault(str(row[_TASK]), Counter())[str(row.get(_REVIEWED) or "").strip().casefold()] += 1
    if not any(counted["correct"] + counted["incorrect"] for counted in votes.values()):
        raise ConfigurationError(f"{path}: {_REVIEWED} is nowhere Correct or Incorrect: name the file as it was published")
    return {task: _majority(counted) for task, counted in votes.items()}


def _majority(counted: Counter[str]) -> TaskLabel:
    correct, incorrect, reviewers = counted["correct"], counted["incorrect"], counted.total()
    success = True if 2 * correct > reviewers else False if 2 * incorrect > reviewers else None
    return TaskLabel(success, f"{correct} of {reviewers} reviewers: correct")


def _chosen(path: Path, agents: Sequence[str], agent: str | None) -> str:
    if agent is None and len(agents) == 1:
        return agents[0]
    if agent is None or agent not in agents:
        said = f"and none of {agent}" if agent else "and a label is of one agent's trajectory"
        raise ConfigurationError(f"{path} has labels of {', '.join(agents)}, {said}: write one of these with --agent")
    return agent


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")
