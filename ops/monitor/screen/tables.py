"""Tables of the terminal view: every worker, every stream, every alert with what to do. Pure."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ops.monitor.alerts.alert import Alert
from ops.monitor.alerts.look import span
from ops.monitor.screen.colours import FAINT, SEVERITIES, state_style
from ops.monitor.screen.figures import figures, memory
from ops.monitor.state import MonitorState
from schemas.text import visible

_MIB = 1 << 20


def alert_table(alerts: Sequence[Alert], now: float) -> Table:
    table = _table("severity", "for", "what, and what to do")
    for alert in alerts:
        condition = alert.condition
        style = SEVERITIES[condition.severity]
        text = Text(visible(condition.sentence), style)
        text.append(f"\n{visible(condition.remedy)}\n{condition.page}\n", FAINT)
        table.add_row(Text(condition.severity.value, style), Text(span(max(0.0, now - alert.since)), FAINT), text)
    if not alerts:
        table.add_row("", "", Text("no alerts", "green"))
    return table


def worker_table(state: MonitorState, now: float) -> Table:
    table = _table("worker", "state", "heard", "what it says")
    for worker in state.workers.by_attention(now):
        silent = state.workers.is_silent(worker, now)
        says = Text(f"{worker.note}  " if worker.note else "")
        says.append(figures(worker.role, state.metrics_of(worker)), FAINT)
        table.add_row(
            Text(worker.name),
            Text("silent" if silent else worker.state, state_style(worker.state, silent=silent)),
            Text(f"{max(0.0, now - worker.heard_at):.0f} s", FAINT),
            says,
        )
    return table


def stream_table(state: MonitorState) -> Table:
    table = _table("stream", "messages", "size", "of its room", "leader")
    for stream in state.streams.values():
        share = f"{stream.num_bytes / stream.max_bytes:.0%}" if stream.max_bytes else ""
        leader = "" if stream.leader is None else stream.leader or "none"
        size = memory(stream.num_bytes / _MIB)
        table.add_row(*map(Text, (stream.stream, f"{stream.num_messages:,}", size, share, leader)))
    return table


def _table(*columns: str) -> Table:
    """The last column gets what room there is."""
    table = Table(box=None, expand=True, padding=(0, 1, 0, 0), header_style=FAINT)
    for column in columns:
        is_last = column == columns[-1]
        table.add_column(column, no_wrap=not is_last, overflow="fold" if is_last else "ellipsis", ratio=1 if is_last else None)
    return table
