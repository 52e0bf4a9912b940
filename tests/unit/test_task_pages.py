"""docs/tasks.md has every field of a task file and every field of the benchmarks, as they are read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ops.tasks.benchmarks import NAMES, benchmark
from ops.tasks.pages import benchmarks_table, fields_table, mapping_table
from trainer.feeding.task_fields import FIELDS

_PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("table", [fields_table, benchmarks_table, mapping_table])
def test_the_page_has_the_table_as_it_is_made(table: Callable[[], str]) -> None:
    assert table() in _PAGE, f"write what ops.tasks.pages.{table.__name__}() returns"


def test_the_tables_have_all_there_is() -> None:
    assert all(f"| `{field.name}` |" in fields_table() for field in FIELDS)
    assert all(f"`{rule.field}`" in mapping_table() for name in NAMES for rule in benchmark(name).rules)
    assert all(benchmark(name).licence in benchmarks_table() for name in NAMES)
