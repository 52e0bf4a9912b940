"""A matrix of verdicts for a terminal."""

from collections.abc import Mapping, Sequence

from rich.table import Table


def verdict_matrix(counts: Mapping[str, Mapping[str, int]], columns: Sequence[str], order: Sequence[str]) -> Table:
    """Draws `counts[row][column]`: rows and columns stand in `order`, and a row without a count is left out."""
    shown = [word for word in order if word in columns]
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("")
    for word in shown:
        table.add_column(word, justify="right")
    for row in (word for word in order if word in counts):
        table.add_row(row, *(str(counts[row].get(word, 0)) for word in shown))
    return table
