"""Where a benchmark's figures go: a table for people, and the same figures as JSON beside a plot."""

import json
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
OURS, BASELINE, TARGET = "#1b7f9e", "#b9b9b9", "#c8860a"


@dataclass(frozen=True)
class Report:
    """One benchmark's outcome; `rows` are dataclasses of one kind, whose fields are the table's columns."""

    name: str
    title: str
    rows: Sequence[Any]
    notes: Sequence[str] = ()
    """Sentences below the table: targets, and what the baseline is."""
    draw: Callable[[Axes], None] | None = None

    def publish(self, folder: Path = RESULTS) -> None:
        """Prints the table; writes `<name>.json` and, with `draw`, `<name>.png` into `folder`."""
        console = Console(width=160)
        console.print(self.table())
        for note in self.notes:
            console.print(f"  {note}", highlight=False)
        folder.mkdir(parents=True, exist_ok=True)
        content = {
            "title": self.title,
            "machine": {"cpus": os.cpu_count(), "system": platform.system(), "python": platform.python_version()},
            "rows": [asdict(row) for row in self.rows],
            "notes": list(self.notes),
        }
        (folder / f"{self.name}.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        if self.draw is not None:
            self._plot(folder / f"{self.name}.png")

    def table(self) -> Table:
        table = Table(title=self.title, title_justify="left")
        columns = [field.name for field in fields(self.rows[0])]
        for column in columns:
            text = isinstance(getattr(self.rows[0], column), str)
            table.add_column(column.replace("_", " "), justify="left" if text else "right")
        for row in self.rows:
            table.add_row(*(_shown(getattr(row, column)) for column in columns))
        return table

    def _plot(self, path: Path) -> None:
        with mpl.rc_context({"font.size": 10.0, "axes.spines.top": False, "axes.spines.right": False}):
            figure = Figure(figsize=(8.0, 4.2), dpi=130, layout="constrained")
            FigureCanvasAgg(figure)
            axes = figure.add_subplot()
            axes.set_title(self.title)
            assert self.draw is not None
            self.draw(axes)
            figure.savefig(path)


def _shown(value: object) -> str:
    match value:
        case None:
            return ""
        case float() if abs(value) >= 100:
            return f"{value:,.0f}"
        case float():
            return f"{value:.3g}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)
