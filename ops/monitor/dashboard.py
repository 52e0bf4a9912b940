"""The terminal display: a pure drawing of a `View` in a given size, and the loop that keeps it on the screen.

In a terminal the display lives on the alternate screen and its last frame stays behind; anywhere else a line is written
every ten seconds and at every new phase.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from textwrap import wrap

import anyio
from rich.console import Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ops.console.terminal import Console
from ops.monitor.curve import draw_curve
from ops.monitor.feed import draw_feed
from ops.monitor.screen.figures import number
from ops.monitor.view import Curve, Progress, RoleRow, View

_REDRAW_S = 0.5
_LINE_S = 10.0
_WIDE = 120
_SIDE = 52
_CHART_LEAST, _CHART_MOST = 7, 36
_GOOD = {"running", "working", "training"}
_BAD = {"fatal"}
_OVER = {"finished", "stopped"}
_PAUSED = "paused"


def render(view: View, width: int, height: int) -> RenderableType:
    """Draws one frame of at most `height` lines."""
    head = [
        _phases(view, width),
        _line(view.remark, "italic bright_black"),
        *(_progress(progress, width) for progress in view.progress),
        *_pauses(view, width),
    ]
    metrics = [(label, value) for label, value in metric_texts(view) if value]
    if view.curve is None and view.feed is None:
        return Group(*head, _metric_grid(metrics, max(1, width // 26)), _roles(view.roles))
    if width >= _WIDE:
        rows = height - len(head)
        figures = [_panel(_metric_list(metrics), "metrics")] if metrics else []
        side = Group(*figures, _panel(_roles(view.roles), "roles"))
        body = Table.grid(expand=True, padding=(0, 1, 0, 0))
        body.add_column(ratio=1)
        body.add_column(width=_SIDE)
        body.add_row(_chart(view, width - _SIDE - 2, min(rows, _CHART_MOST)), side)
        return Group(*head, body)
    columns = max(1, width // 26)
    metric_rows = -(-len(metrics) // columns)
    rows = height - len(head) - metric_rows - len(view.roles)
    chart = [_chart(view, width, min(rows, _CHART_MOST))] if rows >= _CHART_LEAST else []
    return Group(*head, *chart, _metric_grid(metrics, columns), _roles(view.roles))


def metric_texts(view: View) -> list[tuple[str, str]]:
    """Labels and values; an empty value is not known yet."""
    f = view.metrics
    if f is None:
        return []
    bound = "" if f.max_staleness is None else f" (≤ {f.max_staleness})"
    return [
        ("episodes", f"{f.num_episodes:,}"),
        (f"success, last {f.success_window}", _percent(f.success)),
        ("policy version", "" if f.version is None else str(f.version)),
        ("staleness", "" if f.staleness is None else f"{f.staleness:.2f}{bound}"),
        ("parse rate", _percent(f.parse_rate, digits=1)),
        ("mismatch", "" if f.mismatch is None else f"{number(f.mismatch)} nats"),
        ("steps waiting", "" if f.queue_depth is None else str(f.queue_depth)),
        ("speed", "" if f.episodes_per_s is None else f"{f.episodes_per_s:.1f} episodes/s"),
    ]


def summary_line(view: View) -> str:
    """One line that says where the run stands."""
    phase = view.phases[view.phase] if view.phase < len(view.phases) else "done"
    working = [
        f"{p.label} {_percent(p.share) or f'{p.done:,.0f}'}" + (f" ({p.note})" if p.note else "") for p in view.progress
    ]
    metrics = [f"{label} {value}" for label, value in metric_texts(view) if value]
    troubled = [f"{r.worker} restarted {r.num_restarts}x" for r in view.roles if r.num_restarts]
    troubled += [f"{r.worker} paused: {r.note}" for r in view.roles if r.state == _PAUSED]
    return " | ".join([f"{_clock(view.elapsed_s)} {phase}", *working, *metrics, *troubled])


def _percent(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{100 * value:.{digits}f} %"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _line(text: str, style: str) -> Text:
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def _phases(view: View, width: int) -> Text:
    """All phases by name where there is room, else the present one."""
    names = list(view.phases)
    if len(view.title) + 10 + sum(len(name) + 4 for name in names) > width:
        names = [name if index == view.phase else "" for index, name in enumerate(names)]
    text = _line("", "")
    text.append(view.title, "bold")
    text.append(f"  {_clock(view.elapsed_s)} ", "bright_black")
    for index, name in enumerate(names):
        done, present = index < view.phase, index == view.phase
        mark, style = ("✓", "green") if done else ("●", "bold cyan") if present else ("○", "bright_black")
        text.append(f" {mark} {name}", style)
    return text


def _progress(progress: Progress, width: int) -> Text:
    text = _line("", "")
    text.append(f"{progress.label:<22.22} ", "bold")
    columns = max(10, min(40, width - 60))
    share = progress.share
    if share is not None:
        full = round(share * columns)
        text.append("━" * full, "cyan")
        text.append("━" * (columns - full), "grey30")
        text.append(f" {_percent(share):>5}")
    amount = f"{progress.done:,.0f}" + (f" of {progress.total:,.0f}" if progress.total else "")
    text.append(f"  {amount}  {progress.note}", "bright_black")
    return text


def _pauses(view: View, width: int) -> list[Text]:
    """Somebody has to act on them: nothing is cut off."""
    told = [f"{row.worker} is paused: {row.note}" for row in view.roles if row.state == _PAUSED]
    return [_line(part, "yellow") for sentence in told for part in wrap(sentence, width)]


def _chart(view: View, width: int, height: int) -> Panel:
    curve, feed = view.curve or Curve(), view.feed
    title = Text(curve.title if feed is None else feed.title, "bold cyan")
    if feed is not None:
        return _panel(Group(*draw_feed(feed, width - 4, height - 2)), title, height=height)
    if curve.held_out:
        title.append_text(Text.assemble("  ", ("●", "bold green"), (" held-out", "default")))
    if curve.train or curve.held_out:
        return _panel(draw_curve(curve, width - 4, height - 2), title, height=height)
    begins = Text("the curve begins with the first judged episodes", "italic bright_black")
    return _panel(begins, title, height=height)


def _panel(inner: RenderableType, title: str | Text, height: int | None = None) -> Panel:
    return Panel(inner, title=title, title_align="left", border_style="bright_black", height=height)


def _metric_grid(metrics: list[tuple[str, str]], columns: int) -> Table:
    grid = Table.grid(expand=True, padding=(0, 2, 0, 0))
    for _ in range(columns):
        grid.add_column(no_wrap=True, ratio=1)
    cells = [Text.assemble((f"{label} ", "bright_black"), (value, "bold")) for label, value in metrics]
    for start in range(0, len(cells), columns):
        grid.add_row(*cells[start : start + columns])
    return grid


def _metric_list(metrics: list[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for label, value in metrics:
        grid.add_row(Text(label, "bright_black"), Text(value, "bold"))
    return grid


def _roles(roles: tuple[RoleRow, ...]) -> Group:
    width = max((len(row.worker) for row in roles), default=0)
    lines = []
    for row in roles:
        style = _style(row.state)
        line = _line("● ", style)
        line.append(f"{row.worker:<{width}}  ", "default")
        line.append(f"{row.state:<8}  ")
        line.append(f"restarted {row.num_restarts}×  " if row.num_restarts else "", "yellow")
        line.append(row.note, "bright_black")
        lines.append(line)
    return Group(*lines)


def _style(state: str) -> str:
    if state in _GOOD:
        return "green"
    if state in _BAD:
        return "bold red"
    return "bright_black" if state in _OVER else "yellow"


@asynccontextmanager
async def dashboard(view: Callable[[], View], console: Console | None = None) -> AsyncIterator[None]:
    """Shows `view()` while the context is open, as of now each time."""
    shown_on = console or Console()
    async with anyio.create_task_group() as group:
        group.start_soon(_live if shown_on.is_terminal else _lines, view, shown_on)
        yield
        group.cancel_scope.cancel()
    if shown_on.is_terminal:
        shown_on.print(render(view(), shown_on.width, shown_on.height - 1))
    else:
        shown_on.print(summary_line(view()), soft_wrap=True, highlight=False, markup=False)


async def _live(view: Callable[[], View], console: Console) -> None:
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(render(view(), console.width, console.height), refresh=True)
            await anyio.sleep(_REDRAW_S)


async def _lines(view: Callable[[], View], console: Console) -> None:
    phase, due = -1, 0.0
    while True:
        shown = view()
        if shown.phase != phase or anyio.current_time() >= due:
            phase, due = shown.phase, anyio.current_time() + _LINE_S
            console.print(summary_line(shown), soft_wrap=True, highlight=False, markup=False)
        await anyio.sleep(_REDRAW_S)
