"""One frame of the terminal view in a given size: what is shown where. Pure."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ops.monitor.alerts.alert import Alert, Severity
from ops.monitor.curve import draw_curve
from ops.monitor.screen import lines, listings, tables
from ops.monitor.screen.cell_grid import cell_grid, grid_height
from ops.monitor.screen.colours import FAINT
from ops.monitor.screen.lines import line
from ops.monitor.state import MonitorState
from ops.run.naming import shown_name
from schemas.config import Config
from schemas.text import visible

_WIDE = 120
_SIDE = 68
_CHART_LEAST, _CHART_MOST = 6, 20
_CELLS_LEAST = 2
_NAME_LEAST = 20
"""Columns of the run's name, and what is around it."""


class View(enum.Enum):
    """Each by its key."""

    OVERVIEW = "1"
    EPISODES = "2"
    WORKERS = "3"
    ALERTS = "4"


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a frame is drawn from."""

    state: MonitorState
    alerts: Sequence[Alert]
    config: Config
    now: float
    view: View = View.OVERVIEW
    missing: Sequence[str] = ()
    """What has not been read yet."""


def frame(shown: Shown, width: int, height: int) -> RenderableType:
    """Of about `height` lines; only the tables may have more."""
    unread = [line(f"reading {', '.join(shown.missing)}", "italic yellow")] if shown.missing else []
    room = height - 1 - len(unread)
    return Group(_title(shown, width), *unread, *_body(shown, width, room))


def summary_line(shown: Shown) -> str:
    """One line that says how the run stands."""
    pairs = [f"{label} {value}" for label, value in lines.metric_pairs(shown.state, shown.config, shown.now) if value != "-"]
    counts = [f"{count} {phase.value}" for phase, count in shown.state.cells.counts().items() if count]
    alerts = [f"{alert.condition.severity.value}: {visible(alert.condition.sentence)}" for alert in shown.alerts]
    return " | ".join([shown_name(shown.config), *pairs, ", ".join(counts) or "no live episodes", *alerts])


def _title(shown: Shown, width: int) -> Text:
    """All of it in any width: the run's name is what is shortened, and then what keys are for."""
    run = shown_name(shown.config)
    alerts = f"{len(shown.alerts) or 'no'} alert{'' if len(shown.alerts) == 1 else 's'}"
    views = [(f" {view.value} {view.name.lower()} ", view is shown.view) for view in View]
    if sum(len(name) for name, _ in views) + len(alerts) + _NAME_LEAST > width:
        views = [(f" {view.value} ", view is shown.view) for view in View]
    room = width - sum(len(name) for name, _ in views) - len(alerts) - len("    q quit")
    text = line(f"millrace {run}" if len(run) + len("millrace ") <= room else run, "bold")
    text.truncate(max(1, room), overflow="ellipsis")
    is_critical = any(alert.condition.severity is Severity.CRITICAL for alert in shown.alerts)
    text.append(f"  {alerts} ", "bold red" if is_critical else "yellow" if shown.alerts else "green")
    for name, is_shown in views:
        text.append(name, "reverse" if is_shown else FAINT)
    text.append(" q quit", FAINT)
    return text


def _body(shown: Shown, width: int, height: int) -> Sequence[RenderableType]:
    state = shown.state
    match shown.view:
        case View.OVERVIEW:
            return _wide(shown, width, height) if width >= _WIDE else _narrow(shown, width, height)
        case View.EPISODES:
            return [lines.phase_line(state.cells), *cell_grid(state.cells, width, height - 1)]
        case View.WORKERS:
            queues = lines.queue_lines(state).values()
            return [tables.worker_table(state, shown.now), Text(), *queues, Text(), tables.stream_table(state)]
        case View.ALERTS:
            return [tables.alert_table(shown.alerts, shown.now)]


def _narrow(shown: Shown, width: int, height: int) -> Sequence[RenderableType]:
    """The curve where there is room, and workers where there is more."""
    state = shown.state
    alerts = lines.alert_lines(shown.alerts, shown.now, 3 if height < 40 else 6)
    grid, num_lines = lines.metric_grid(lines.metric_pairs(state, shown.config, shown.now), width)
    roles, queues = lines.role_lines(state, shown.now), _busy_queues(shown)
    room = height - len(alerts) - num_lines - len(roles) - len(queues) - 1
    room_of_cells = min(grid_height(state.cells, width), max(_CELLS_LEAST, room // 2))
    left = _left(shown, width, room - room_of_cells)
    cells = cell_grid(state.cells, width, room - len(left))
    return [*alerts, grid, *left, *roles, *queues, lines.phase_line(state.cells), *cells]


def _wide(shown: Shown, width: int, height: int) -> Sequence[RenderableType]:
    """The curve and workers; beside them roles, queues, and what came of episodes."""
    state = shown.state
    alerts = lines.alert_lines(shown.alerts, shown.now, 8 if height > 40 else 4)
    grid, num_lines = lines.metric_grid(lines.metric_pairs(state, shown.config, shown.now), width)
    side = [*lines.role_lines(state, shown.now), line(), *_busy_queues(shown)]
    room = height - len(alerts) - num_lines - 1
    middle = max(len(side), room - min(grid_height(state.cells, width), room // 2))
    side += listings.outcome_lines(state.outcomes, middle - len(side))
    both = Table.grid(expand=True, padding=(0, 2, 0, 0))
    both.add_column(ratio=1)
    both.add_column(width=_SIDE)
    left = _left(shown, width - _SIDE - 4, middle)
    both.add_row(Group(*left), Group(*side))
    middle = max(len(left), len(side))
    return [*alerts, grid, both, lines.phase_line(state.cells), *cell_grid(state.cells, width, room - middle)]


def _left(shown: Shown, width: int, height: int) -> list[Text]:
    """At most so many lines: the curve, as soon as there is one, and below it workers; few of them leave it more room."""
    curve = shown.state.run.curve(bar=None, num_expected=0)
    chart = list[Text]()
    if height >= _CHART_LEAST and (curve.train or curve.held_out):
        others = len(shown.state.workers.by_name) + 1
        chart = list(draw_curve(curve, width, min(height, max(_CHART_MOST, height - others))).split("\n"))
    elif height >= 1:
        chart = [line("the curve of success begins with the first judged episodes", f"italic {FAINT}")]
    return [*chart, *listings.worker_lines(shown.state, shown.now, height - len(chart))]


def _busy_queues(shown: Shown) -> list[Text]:
    """Those of evaluation only while they hold something: mostly they do not."""
    found = lines.queue_lines(shown.state)
    depths = {name: queue.depth for name, queue in shown.state.queues.items()}
    return [
        text
        for name, text in found.items()
        if depths[name].num_pending or depths[name].num_in_flight or not name.endswith("_eval")
    ]
