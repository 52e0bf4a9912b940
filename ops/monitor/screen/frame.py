"""One frame of the terminal view in a given size: what is shown where. Pure."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ops.monitor.alerts.alert import Alert, Severity
from ops.monitor.curve import draw_curve
from ops.monitor.screen import lines, tables
from ops.monitor.screen.cell_grid import cell_grid
from ops.monitor.screen.colours import FAINT
from ops.monitor.state import MonitorState
from ops.run.naming import shown_name
from schemas.config import Config
from schemas.text import visible

_WIDE = 120
_SIDE = 68
_CHART_LEAST, _CHART_MOST = 6, 16
_CELLS_LEAST = 2


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
    unread = [lines.line(f"reading {', '.join(shown.missing)}", "italic yellow")] if shown.missing else []
    room = height - 1 - len(unread)
    return Group(_title(shown), *unread, *_body(shown, width, room))


def summary_line(shown: Shown) -> str:
    """One line that says how the run stands."""
    pairs = [f"{label} {value}" for label, value in lines.metric_pairs(shown.state, shown.config, shown.now) if value != "-"]
    counts = [f"{count} {phase.value}" for phase, count in shown.state.cells.counts().items() if count]
    alerts = [f"{alert.condition.severity.value}: {visible(alert.condition.sentence)}" for alert in shown.alerts]
    return " | ".join([shown_name(shown.config), *pairs, ", ".join(counts) or "no live episodes", *alerts])


def _title(shown: Shown) -> Text:
    text = lines.line()
    text.append(f"millrace {shown_name(shown.config)} ", "bold")
    is_critical = any(alert.condition.severity is Severity.CRITICAL for alert in shown.alerts)
    style = "bold red" if is_critical else "yellow" if shown.alerts else "green"
    text.append(f" {len(shown.alerts) or 'no'} alert{'' if len(shown.alerts) == 1 else 's'}  ", style)
    for view in View:
        text.append(f" {view.value} {view.name.lower()} ", "reverse" if view is shown.view else FAINT)
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
    state = shown.state
    alerts = lines.alert_lines(shown.alerts, shown.now, 3 if height < 40 else 6)
    grid, num_lines = lines.metric_grid(lines.metric_pairs(state, shown.config, shown.now), width)
    roles, queues = lines.role_lines(state, shown.now), _busy_queues(shown)
    room = height - len(alerts) - num_lines - len(roles) - len(queues) - 1
    chart_height = min(_CHART_MOST, room - _CELLS_LEAST)
    chart = [_chart(shown, width, chart_height)] if chart_height >= _CHART_LEAST else []
    cells = cell_grid(state.cells, width, room - chart_height if chart else room)
    return [*alerts, grid, *chart, *roles, *queues, lines.phase_line(state.cells), *cells]


def _wide(shown: Shown, width: int, height: int) -> Sequence[RenderableType]:
    """Curve, and roles and queues beside it."""
    state = shown.state
    alerts = lines.alert_lines(shown.alerts, shown.now, 8 if height > 40 else 4)
    grid, num_lines = lines.metric_grid(lines.metric_pairs(state, shown.config, shown.now), width)
    side = [*lines.role_lines(state, shown.now), Text(), *_busy_queues(shown)]
    left = height - len(alerts) - num_lines - 1
    middle = max(len(side), min(_CHART_MOST, left // 2))
    both = Table.grid(expand=True, padding=(0, 2, 0, 0))
    both.add_column(ratio=1)
    both.add_column(width=_SIDE)
    both.add_row(_chart(shown, width - _SIDE - 4, middle), Group(*side))
    return [*alerts, grid, both, lines.phase_line(state.cells), *cell_grid(state.cells, width, left - middle)]


def _busy_queues(shown: Shown) -> list[Text]:
    """Those of evaluation only while they hold something: mostly they do not."""
    found = lines.queue_lines(shown.state)
    depths = {name: queue.depth for name, queue in shown.state.queues.items()}
    return [
        text
        for name, text in found.items()
        if depths[name].num_pending or depths[name].num_in_flight or not name.endswith("_eval")
    ]


def _chart(shown: Shown, width: int, height: int) -> Text:
    curve = shown.state.run.curve(bar=None, num_expected=0)
    if curve.train or curve.held_out:
        return draw_curve(curve, width, height)
    return Text("the curve of success begins with the first judged episodes" + "\n" * (height - 1), f"italic {FAINT}")
