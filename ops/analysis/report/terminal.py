"""A report for a terminal. Words from pages and task files are printed as they are, without markup and control characters."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from ops.analysis.report.tables import NOTHING, Cell, Headline, Section, Table, interval, percent, shown
from ops.statistics.shares import Share
from schemas.text import visible

_LONGEST = 60


def show(title: str, headlines: Sequence[Headline], sections: Sequence[Section], console: Console) -> None:
    console.print(Text(visible(title), "bold"), soft_wrap=True)
    figures = Drawn(show_header=False, box=None, padding=(0, 2, 0, 0))
    for headline in headlines:
        figures.add_row(headline.label, Text(shown(headline.value), "bold"), Text(headline.note, "bright_black"))
    console.print(figures)
    for section in sections:
        console.print(Text(f"\n{section.title}", "bold cyan"))
        if section.note:
            console.print(Text(section.note, "bright_black"))
        for table in section.tables:
            console.print(drawn(table))


def drawn(table: Table) -> Drawn:
    grid = Drawn(
        title=Text(visible(table.title), "bold"),
        title_justify="left",
        caption=Text(table.note) if table.note else None,
        caption_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
    )
    for number, column in enumerate(table.columns):
        grid.add_column(Text(column), justify="left" if number == 0 else "right", overflow="fold")
    for row in table.rows:
        grid.add_row(*map(_cell, row))
    return grid


def _cell(cell: Cell) -> Text:
    match cell:
        case Share() if cell.value is not None:
            text = Text(percent(cell.value), "bold")
            return text.append(f"  {interval(cell)}  {cell.count:,}/{cell.number:,}", "not bold bright_black")
        case str():
            return Text(visible(cell, _LONGEST))
        case _:
            return Text(shown(cell), "bright_black" if shown(cell) == NOTHING else "")
