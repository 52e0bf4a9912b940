"""The table of all MiniWoB++ pages in docs/miniwob.md, made from benchmarks/results/miniwob_pages.json."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

BEGIN, END = "<!-- pages: made by benchmarks/miniwob_pages.py -->\n", "<!-- end of pages -->\n"
_RESULTS = Path(__file__).parents[3] / "benchmarks" / "results" / "miniwob_pages.json"
_HEAD = """\
| page | first screenshot | random actions accepted | ended by | its reward | oracle, coordinates | oracle, marks |
|---|---|---|---|---|---|---|
"""


def table() -> str:
    rows: Sequence[Mapping[str, object]] = json.loads(_RESULTS.read_text(encoding="utf-8"))["rows"]
    return _HEAD + "".join(_line(row) for row in rows)


def write_table(page: Path) -> None:
    """Replaces the table between the two marks."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    page.write_text(before + BEGIN + table() + END + rest.partition(END)[2], encoding="utf-8")


def _line(row: Mapping[str, object]) -> str:
    cells = (
        row["page"],
        "shown" if row["starts"] else "blank",
        f"{row['accepted']} of {row['given']}",
        row["ended_by"],
        row["reward"],
        row["coordinates"],
        row["set_of_marks"],
    )
    return f"| {' | '.join(str(cell) for cell in cells)} |\n"
