"""Defines what a report shows: sections of tables and charts, which a terminal and a page draw alike."""

from dataclasses import dataclass

from ops.statistics.shares import Share

Cell = str | int | float | Share | None
"""None: there is nothing to say."""
NOTHING = "–"


@dataclass(frozen=True, kw_only=True)
class Table:
    title: str
    columns: tuple[str, ...]
    """The first one names the row."""
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Series:
    """Points of one line, or of one colour of bars."""

    name: str
    points: tuple[tuple[float, Share], ...]
    """Place on the axis, and what is drawn there with its interval."""
    joined: bool = True
    """By a line; else each point stands for itself."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Shares over an axis; no series: there is nothing to draw."""

    name: str
    """Of its file."""
    title: str
    axis: str
    series: tuple[Series, ...]
    labels: tuple[str, ...] = ()
    """Of the places 0, 1, ...; empty: the axis is one of numbers."""


@dataclass(frozen=True, kw_only=True)
class Section:
    title: str
    note: str = ""
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Headline:
    """A figure to read at a glance."""

    label: str
    value: Cell
    note: str = ""


def shown(cell: Cell) -> str:
    """As plain text.

    >>> shown(Share(1, 4)), shown(1234), shown(0.25), shown(None)
    ('25.0 % (4.6–69.9, 1 of 4)', '1,234', '0.250', '–')
    """
    match cell:
        case None:
            return NOTHING
        case Share():
            if cell.value is None or cell.interval is None:
                return NOTHING
            return f"{percent(cell.value)} ({interval(cell)}, {cell.count:,} of {cell.number:,})"
        case int():
            return f"{cell:,}"
        case float():
            return number(cell)
        case str():
            return cell


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def interval(share: Share) -> str:
    """In per cent, without its sign."""
    low, high = share.interval or (0.0, 1.0)
    return f"{100 * low:.1f}–{100 * high:.1f}"


def number(value: float) -> str:
    """With about three digits that count."""
    size = abs(value)
    if 0 < size < 0.001:
        return f"{value:.1e}"
    digits = 0 if size >= 1000 or value == 0 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:,.{digits}f}"
