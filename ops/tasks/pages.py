"""The tables of docs/tasks.md: every field of a line, and every benchmark with what becomes of its fields."""

from ops.tasks.benchmarks import NAMES, benchmark
from ops.tasks.display import becomes
from ops.tasks.mapping import Benchmark
from trainer.feeding.task_fields import FIELDS


def fields_table() -> str:
    rows = ["| field | | what it is |", "|---|---|---|"]
    for field in FIELDS:
        missing = "required" if field.write else f"`{_default(field.default)}`" if field.attribute else "kept"
        rows.append(f"| `{field.name}` | {missing} | {field.meaning} |")
    return "\n".join(rows)


def _default(value: object) -> str:
    return '""' if value == "" else "[]" if value == () else str(value)


def benchmarks_table() -> str:
    rows = ["| name | files | licence |", "|---|---|---|"]
    for name in NAMES:
        found = benchmark(name)
        rows.append(f"| `{name}` | {found.published} | {found.licence} |")
    return "\n".join(rows)


def mapping_table() -> str:
    rows = ["| benchmark | published field | becomes |", "|---|---|---|"]
    for name in NAMES:
        found = benchmark(name)
        rows += [f"| {_first(found, number)} | `{rule.field}` | {becomes(rule)} |" for number, rule in enumerate(found.rules)]
    return "\n".join(rows)


def _first(found: Benchmark, number: int) -> str:
    return f"`{found.name}`" if number == 0 else ""
