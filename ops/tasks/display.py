"""Prepared and checked task files for a terminal."""

from collections import Counter

from rich.table import Table
from rich.text import Text

from ops.console.terminal import Console
from ops.tasks.checking import Checked
from ops.tasks.mapping import Kept, Mapped, Rule
from ops.tasks.preparing import Prepared, Request
from ops.tasks.summary import Summary
from schemas.text import visible
from trainer.feeding.problems import SHOWN, more_than

_MOST = 8
_LONGEST = 60


def show_prepared(prepared: Prepared, request: Request, console: Console) -> None:
    mapper = prepared.mapper
    table = _table("field", "becomes", "tasks that have it")
    for rule in mapper.benchmark.rules:
        table.add_row(rule.field, becomes(rule).replace("`", ""), f"{mapper.counts[rule.field]:,}")
    for name, number in sorted(mapper.unknown.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]:
        table.add_row(Text(visible(name, _LONGEST)), "kept in metadata (not known here)", f"{number:,}")
    for more in more_than(len(mapper.unknown)):
        table.add_row(more, "kept in metadata (not known here)", "")
    console.print(table)
    for note in mapper.benchmark.notes:
        console.print(note.replace("`", ""), highlight=False, markup=False)
    if prepared.problems:
        console.print(f"{prepared.num_bad:,} left out:\n{prepared.problems}", highlight=False, markup=False, soft_wrap=True)
    parts = [f"{prepared.num_written:,} tasks in {request.out}", f"of {prepared.num_read:,} read"]
    if prepared.num_left_out:
        parts.append(f"{prepared.num_left_out:,} not selected")
    console.print(", ".join(parts), highlight=False, markup=False, soft_wrap=True)


def becomes(rule: Rule) -> str:
    """What a rule does, in words."""
    match rule:
        case Mapped():
            said, why = rule.to, rule.how
        case Kept():
            said, why = "kept in metadata", rule.why
        case _:
            said, why = "not used", rule.why
    return f"{said}: {why}" if why else said


def show_checked(checked: Checked, console: Console) -> None:
    if checked.errors:
        console.print(str(checked.errors), highlight=False, markup=False, soft_wrap=True)
    for warning in checked.warnings():
        console.print(f"warning: {warning}", highlight=False, markup=False, soft_wrap=True)
    for note in checked.notes():
        console.print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)
    if checked.errors:
        number, right = checked.errors.number, checked.summary.num_tasks
        said = f"{checked.file}: {number:,} {'error' if number == 1 else 'errors'}, {right:,} tasks without one"
        console.print(said, highlight=False, markup=False, soft_wrap=True)
    else:
        console.print(_summary(checked.summary))


def _summary(summary: Summary) -> Table:
    table = _table("", "tasks", "")
    table.add_row("all", f"{summary.num_tasks:,}", "")
    judged = {
        "evaluator_reference": summary.num_facts,
        "definite_answer": summary.num_answers,
        "checks": summary.num_checks,
    }
    table.add_row("with", "", Text(_listed(judged)))
    for name, counts in (
        ("difficulties", summary.difficulties),
        ("splits", summary.splits),
        ("distributions", summary.distributions),
        ("domains", summary.domains),
        ("sites", summary.sites),
    ):
        table.add_row(name, f"{len(counts):,}", Text(_most(counts)))
    return table


def _most(counts: Counter[str]) -> str:
    rest = len(counts) - _MOST
    return _listed(dict(counts.most_common(_MOST))) + (f", {rest:,} others" if rest > 0 else "")


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{visible(name, _LONGEST)} {number:,}" for name, number in counts.items())


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for number, column in enumerate(columns):
        table.add_column(column, overflow="fold", justify="right" if number and "tasks" in column else "left")
    return table
