"""Chooses the tasks of a protocol from its file. Pure, but for reading it.

Lines are passed on as they are, so that what a line holds beyond what is known here stays in it.
"""

import codecs
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ops.analysis.evaluation.protocol import TaskChoice
from schemas.env_config import difficulty_class
from schemas.errors import ConfigurationError, TaskFileError
from schemas.ids import TaskId
from schemas.site import site_of
from trainer.feeding.task_files import TaskSpec, right_lines

_LENGTH = "reference_length"


@dataclass(frozen=True)
class ChosenTasks:
    """Of one file."""

    sha256: str
    """Of the whole file."""
    tasks: tuple[TaskId, ...]
    content: bytes
    """A task file of its own, with their lines; empty: it is the whole file."""
    lengths: Mapping[TaskId, object]
    """Steps that a person took, as their lines have it; None: they do not."""


def choose(file: Path, choice: TaskChoice) -> ChosenTasks:
    """Reads the file once, and keeps what is chosen.

    Raises `ConfigurationError` when it is not the protocol's, cannot be read, or none of its tasks is chosen.
    """
    digest, latest = hashlib.sha256(), [b""]

    def see(raw: bytes) -> None:
        digest.update(raw)
        latest[0] = raw

    is_chosen, takes_all = _chooser(choice), choice == TaskChoice(file=choice.file, sha256=choice.sha256)
    lengths: dict[TaskId, object] = {}
    lines, num_read = list[bytes](), 0
    for line, spec in right_lines(file, see):
        num_read += 1
        if is_chosen(spec) and (choice.first is None or len(lengths) < choice.first):
            lengths[spec.task] = _length(line.fields)
            if not takes_all:
                lines.append(latest[0].removeprefix(codecs.BOM_UTF8).removesuffix(b"\n") + b"\n")
    if choice.sha256 not in ("", digest.hexdigest()):
        raise ConfigurationError(
            f"{file} is not the protocol's task file: its sha256 is {digest.hexdigest()}, and tasks.sha256 {choice.sha256}; "
            "get the file that is meant, or write a protocol of your own for this one"
        )
    if not lengths:
        raise ConfigurationError(f"none of the {num_read} tasks of {file} is one that tasks chooses: say less there")
    content = b"" if len(lengths) == num_read else b"".join(lines)
    return ChosenTasks(digest.hexdigest(), tuple(lengths), content, lengths)


def reference_lengths(chosen: ChosenTasks) -> dict[str, int]:
    """Steps that a person took for each task. Raises `TaskFileError` that names the tasks of which the file does not say."""
    lengths = {str(task): value for task, value in chosen.lengths.items() if type(value) is int and value > 0}
    missing = [task for task in chosen.tasks if task not in lengths]
    if missing:
        named = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        raise TaskFileError(
            f"a submission states how many steps people took, and the task file does not say it of {named}: write the data "
            f"set's {_LENGTH} into each line, or make the file with millrace tasks prepare online-mind2web"
        )
    return lengths


def _length(fields: Mapping[str, object]) -> object:
    """As the line has it, or as `millrace tasks prepare` keeps it."""
    metadata = fields.get("metadata")
    return fields.get(_LENGTH, metadata.get(_LENGTH) if isinstance(metadata, dict) else None)


def _chooser(choice: TaskChoice) -> Callable[[TaskSpec], bool]:
    sites, without = frozenset(map(site_of, choice.sites)), frozenset(map(site_of, choice.without_sites))

    def is_chosen(spec: TaskSpec) -> bool:
        site = site_of(spec.website)
        return (
            (not choice.splits or spec.split in choice.splits)
            and (not choice.difficulties or difficulty_class(spec.difficulty) in choice.difficulties)
            and (not choice.domains or spec.domain in choice.domains)
            and (not choice.distributions or spec.distribution in choice.distributions)
            and (not sites or site in sites)
            and site not in without
            and spec.task not in choice.without_tasks
        )

    return is_chosen
