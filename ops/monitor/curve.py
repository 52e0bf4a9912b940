"""A line chart of success over episodes in text cells: braille dots for the curve, eight to a cell."""

from rich.text import Text

from ops.monitor.view import Curve, CurvePoint

_LABEL = 6
"""Columns left of the plot: `100 % `."""
# Dot (x, y) of a braille cell, two wide and four high.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_CURVE, _BAR, _HELD_OUT, _AXIS = "bold cyan", "yellow", "bold green", "bright_black"
_Cells = dict[tuple[int, int], tuple[str, str]]
"""Glyph and style by column and row."""


def draw_curve(curve: Curve, width: int, height: int) -> Text:
    """Exactly `height` lines of at most `width` columns; the last two are the axis and its labels."""
    columns, rows = max(8, width - _LABEL), max(2, height - 2)
    last = max(1, curve.num_expected, *(p.num_episodes for p in (*curve.train, *curve.held_out)), 0)
    drawn = _line(curve.train, last, columns, rows)
    for point in curve.held_out:
        drawn[_column(point.num_episodes, last, columns), _row(point.success, rows)] = ("●", _HELD_OUT)
    cells = _bar(curve, drawn, columns, rows) | drawn
    text = Text(no_wrap=True, overflow="crop")
    labels = _labels(curve, rows)
    for row in range(rows):
        label, style = labels.get(row, ("", _AXIS))
        text.append(f"{label:>5}", style)
        text.append("┤" if label else "│", _AXIS)
        for column in range(columns):
            text.append(*cells.get((column, row), (" ", "")))
        text.append("\n")
    text.append_text(_axis(curve, last, columns))
    return text


def _bar(curve: Curve, drawn: _Cells, columns: int, rows: int) -> _Cells:
    """The line to be reached, with its label on it or beside it, where nothing else is drawn."""
    if curve.bar is None:
        return {}
    row = _row(curve.bar, rows)
    cells: _Cells = {(column, row): ("┄", _BAR) for column in range(columns)}
    label = f" {curve.bar_label} "[: columns - 2] if curve.bar_label else ""
    places = [(first, near) for near in (row, row + 1, row - 1) for first in range(2, columns - len(label) + 1)]
    for first, near in places:
        taken = {(first + index, near): (glyph, _BAR) for index, glyph in enumerate(label)}
        if 0 <= near < rows and not taken.keys() & drawn.keys():
            return cells | taken
    return cells


def _labels(curve: Curve, rows: int) -> dict[int, tuple[str, str]]:
    labels = {_row(level, rows): (f"{level:.0%}".replace("%", " %"), _AXIS) for level in (0.0, 0.5, 1.0)}
    if curve.bar is not None:
        labels[_row(curve.bar, rows)] = (f"{curve.bar:.0%}".replace("%", " %"), _BAR)
    return labels


def _row(success: float, rows: int) -> int:
    return round((1.0 - min(1.0, max(0.0, success))) * (rows - 1))


def _column(num_episodes: int, last: int, columns: int) -> int:
    return round(num_episodes / last * (columns - 1))


def _line(points: tuple[CurvePoint, ...], last: int, columns: int, rows: int) -> _Cells:
    dots: dict[tuple[int, int], int] = {}
    placed = [
        (p.num_episodes / last * (columns * 2 - 1), (1.0 - min(1.0, max(0.0, p.success))) * (rows * 4 - 1)) for p in points
    ]
    for (x0, y0), (x1, y1) in zip(placed, placed[1:] or placed, strict=False):
        steps = max(1, round(max(abs(x1 - x0), abs(y1 - y0))))
        for step in range(steps + 1):
            x, y = round(x0 + (x1 - x0) * step / steps), round(y0 + (y1 - y0) * step / steps)
            cell = (x // 2, y // 4)
            dots[cell] = dots.get(cell, 0) | _DOTS[y % 4][x % 2]
    return {cell: (chr(0x2800 + bits), _CURVE) for cell, bits in dots.items()}


def _axis(curve: Curve, last: int, columns: int) -> Text:
    ticks = {_column(mark.num_episodes, last, columns): f"v{mark.version}" for mark in curve.versions}
    line = "".join("┬" if column in ticks else "─" for column in range(columns))
    end = f"{last:,} {curve.unit}"
    labels = [" "] * max(0, columns - len(end) - 1)
    for column, label in sorted(ticks.items()):
        room = labels[max(0, column - 1) : column + len(label) + 1]
        if len(room) > len(label) and not "".join(room).strip():
            labels[column : column + len(label)] = label
    text = Text(f"{'└':>6}{line}\n", _AXIS)
    text.append(f"{'':>6}{''.join(labels)} ", "magenta")
    text.append(end[:columns], _AXIS)
    return text
