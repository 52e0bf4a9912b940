"""Prepares a task file from published ones: read, mapped, checked by the feeder's own reader, selected and written.

A line is held at a time. Nothing stands under the file's name before all of it is right.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio.lowlevel
import msgspec

from browser_workers.actions import web_address
from ops.run.task_files import task_file
from ops.tasks.mapping import Benchmark, Mapper
from ops.tasks.records import Record, records
from ops.tasks.selection import Sample, Selection
from schemas.errors import ConfigurationError
from schemas.ids import TaskId
from schemas.text import MOST
from trainer.feeding.problems import Problem, Problems, Unfit, shown
from trainer.feeding.task_fields import NAMES
from trainer.feeding.task_files import TaskSpec, read_spec

_LINES_BETWEEN_STOPS = 500
_PLACEHOLDER = re.compile(r"__([A-Z][A-Z0-9_]*?)__")


@dataclass(frozen=True, kw_only=True)
class Request:
    benchmark: Benchmark
    files: tuple[Path, ...]
    out: Path
    selection: Selection = Selection()
    sample: int | None = None
    seed: int = 0
    skip_bad: bool = False
    website: str = ""
    """Where tasks start that name no page."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Of sites that stand as `__NAME__`."""


@dataclass
class Prepared:
    """What became of the records."""

    mapper: Mapper
    problems: Problems = field(default_factory=Problems)
    num_read: int = 0
    num_bad: int = 0
    num_left_out: int = 0
    """By the selection."""
    num_written: int = 0


async def prepare(request: Request) -> Prepared:
    """Raises `ConfigurationError`, with all that is wrong, unless bad records are to be skipped; then nothing is written."""
    if request.out.resolve() in [file.resolve() for file in request.files]:
        raise ConfigurationError(f"{request.out} is one of the files to prepare: write to another")
    prepared = Prepared(Mapper(request.benchmark))
    sample = None if request.sample is None else Sample(request.sample, request.seed)
    with task_file(request.out) as write:
        for line in _lines(request, prepared):
            if line is None:
                # Ctrl-C ends it here.
                await anyio.lowlevel.checkpoint()
            elif sample is None:
                prepared.num_written += 1
                write(line)
            else:
                sample.add(line)
        for line in sample.lines() if sample else ():
            prepared.num_written += 1
            write(line)
        if prepared.problems and not request.skip_bad:
            raise ConfigurationError(
                f"{prepared.num_bad:,} of {prepared.num_read:,} tasks cannot be prepared, so nothing was written; "
                f"mend them, or leave them out with --skip-bad:\n{prepared.problems}"
            )
        if not prepared.num_written:
            raise ConfigurationError(
                f"no task is left of {prepared.num_read:,} ({prepared.num_bad:,} cannot be prepared, "
                f"{prepared.num_left_out:,} are not selected), so nothing was written"
            )
    return prepared


def _lines(request: Request, prepared: Prepared) -> Iterator[bytes | None]:
    """Lines to write, and None from time to time."""
    seen: dict[TaskId, tuple[Path, str]] = {}
    for file in request.files:
        split = request.benchmark.split_of(file)
        for record in records(file):
            prepared.num_read += 1
            if prepared.num_read % _LINES_BETWEEN_STOPS == 0:
                yield None
            line, spec, wrong = _prepared(request, prepared.mapper, record, split)
            if spec is not None and (first := seen.setdefault(spec.task, (file, record.place))) != (file, record.place):
                of = "" if first[0] == file else f" of {first[0]}"
                named = request.benchmark.published_name("task_id", {})
                wrong = [(named, f"{spec.task} stands at {first[1]}{of} already; one of them has to go")]
            if wrong or spec is None:
                prepared.num_bad += 1
                for name, what in wrong:
                    prepared.problems.add(Problem(file, record.place, name, what))
            elif request.selection.takes(spec):
                yield line
            else:
                prepared.num_left_out += 1


def _prepared(
    request: Request, mapper: Mapper, record: Record, split: str
) -> tuple[bytes, TaskSpec | None, list[tuple[str, str]]]:
    """The line, what the feeder reads in it, and what is wrong: published field and sentence."""
    if isinstance(record.fields, Unfit):
        return b"", None, [("", str(record.fields))]
    try:
        line, wrong = mapper.line(record.fields, split)
        _place(line, request, wrong, record.fields)
        _evaluate(line, request, wrong, record.fields)
        spec, more = read_spec(line)
        for ours, what in more:
            published = request.benchmark.published_name(ours, record.fields)
            if all(name != published for name, _ in wrong):
                wrong.append((published, what))
        encoded = msgspec.json.encode({name: line[name] for name in NAMES if name in line}) + b"\n"
    except RecursionError:
        return b"", None, [("", "lists and objects stand too deep in each other")]
    except (TypeError, ValueError, OverflowError) as error:
        return b"", None, [("", f"it cannot be written as JSON ({error})")]
    if len(encoded) > MOST and (length := len(encoded.decode())) > MOST:
        wrong.append(("", f"its line would have {length:,} characters, and a task file's has {MOST:,} at most"))
    return encoded, None if wrong else spec, wrong


def _evaluate(line: dict[str, object], request: Request, wrong: list[tuple[str, str]], record: Mapping[str, object]) -> None:
    """Adds what the benchmark's own evaluators go by."""
    benchmark = request.benchmark
    if benchmark.evaluation is None or wrong:
        return
    try:
        line["evaluation"] = benchmark.evaluation(record, request.addresses)
    except Unfit as error:
        wrong.append((benchmark.published_name("evaluation", record), str(error)))


def _place(line: dict[str, object], request: Request, wrong: list[tuple[str, str]], record: Mapping[str, object]) -> None:
    """Makes the website an address on the web."""
    website = line.get("website", request.website)
    published = request.benchmark.published_name("website", record)
    if not website:
        wrong.append((published, "it is missing; say with --website where tasks start that name no page"))
    if not website or not isinstance(website, str):
        return
    placed = _PLACEHOLDER.sub(lambda found: request.addresses.get(found[1], found[0]), website)
    if named := _PLACEHOLDER.search(placed):
        what = f"{shown(website)} stands for a site of yours: say where it is, as in --address {named[1]}=http://host:port"
    elif address := web_address(placed):
        line["website"] = address
        return
    else:
        what = f"{shown(website)} is no http(s) address"
    wrong.append((published, what))
