"""Single lines of the terminal view: alerts, metrics, phases, roles, queues. Pure drawings of a part of the state."""

from collections import Counter
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ops.monitor.alerts.alert import Alert
from ops.monitor.alerts.look import span
from ops.monitor.cells import Cells
from ops.monitor.screen.colours import FAINT, LETTERS, SEVERITIES, STYLES, state_style
from ops.monitor.screen.figures import number, share
from ops.monitor.state import MonitorState
from ops.monitor.workers import Worker
from schemas.config import Config
from schemas.messages import Role
from schemas.text import visible

_FIGURE_WIDTH = 26


def line(text: str = "", style: str = "") -> Text:
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def alert_lines(alerts: Sequence[Alert], now: float, most: int) -> list[Text]:
    """At most `most` lines, the last one a count of those that have no room."""
    shown = alerts if len(alerts) <= most else alerts[: most - 1]
    lines = []
    for alert in shown:
        condition = alert.condition
        text = line()
        text.append(f"{condition.severity.value.upper():<9}", SEVERITIES[condition.severity])
        text.append(f"{span(max(0.0, now - alert.since)):>6}  ", FAINT)
        text.append(visible(condition.sentence), SEVERITIES[condition.severity])
        lines.append(text)
    if len(shown) < len(alerts):
        lines.append(line(f"and {len(alerts) - len(shown)} more alerts: press 4", "yellow"))
    return lines


def metric_pairs(state: MonitorState, config: Config, now: float) -> list[tuple[str, str]]:
    """Labels and values; an unknown one is a dash."""
    run, feeder = state.run, config.feeder_config
    staleness = _number(run.metrics.get("staleness_mean"), 2)
    ends_at = state.ends_at(feeder.num_iterations, now) if feeder.trains else None
    return [
        ("episodes judged", f"{run.num_episodes:,}"),
        ("success", share(run.success)),
        ("held-out", _held_out(state)),
        ("version", f"{state.version} of {feeder.num_iterations}"),
        ("versions/h", _number(state.versions_per_h, 1)),
        ("ends in", "-" if ends_at is None else f"about {span(ends_at - now)}"),
        ("episodes/s", _number(state.ended.per_s(now), 2)),
        ("steps/s", _number(state.steps.per_s(now), 1)),
        ("judgements/s", _number(state.judged.per_s(now), 2)),
        ("parse rate", share(state.judging.parse_rate, 1)),
        ("staleness", staleness if feeder.staleness_bound is None else f"{staleness} (≤ {feeder.staleness_bound})"),
        ("mismatch", number(run.mismatches[-1]) if run.mismatches else "-"),
        ("judge errors", share(state.judging.error_share, 1)),
        ("judge cost", number(state.judging.spending.cost)),
        ("dead letters", f"{len(state.letters):,}"),
        ("server", "-" if state.server.answer_s is None else f"{1000 * state.server.answer_s:.1f} ms"),
    ]


def _held_out(state: MonitorState) -> str:
    """Of the newest round; one that is not over says so."""
    if not state.run.evaluations:
        return "-"
    version, found = list(state.run.evaluations.items())[-1]
    told, size = f"{share(found.success)} v{version}", state.evaluation_size
    if size is None:
        return f"{told}, {found.num_judged:,} episodes"
    return told if found.num_judged >= size else f"{told}, {found.num_judged:,} of {size:,}"


def metric_grid(pairs: Sequence[tuple[str, str]], width: int) -> tuple[Table, int]:
    """A table, and its number of lines."""
    columns = max(1, width // _FIGURE_WIDTH)
    grid = Table.grid(expand=True, padding=(0, 1, 0, 0))
    for _ in range(columns):
        grid.add_column(no_wrap=True, min_width=_FIGURE_WIDTH - 8)
    cells = [Text.assemble((f"{label} ", FAINT), (value, "bold")) for label, value in pairs]
    for start in range(0, len(cells), columns):
        grid.add_row(*cells[start : start + columns])
    return grid, -(-len(cells) // columns)


def phase_line(cells: Cells) -> Text:
    text = line()
    for phase, count in cells.counts().items():
        text.append(f" {LETTERS[phase]} ", STYLES[phase])
        text.append(f"{phase.value} ", FAINT)
        text.append(f"{count:,} ", "bold")
    if cells.num_unkept:
        text.append(f"{cells.num_unkept:,} not kept", "yellow")
    return text


def role_lines(state: MonitorState, now: float) -> list[Text]:
    """A line per role: how many workers, in which states."""
    lines = []
    for role in Role:
        workers = [worker for worker in state.workers.in_order() if worker.role is role]
        if not workers:
            continue
        states = Counter("silent" if state.workers.is_silent(worker, now) else worker.state for worker in workers)
        text = line(f"{role.value:<9}")
        text.append(f"{len(workers):>3}  ", "bold")
        for name, count in states.items():
            text.append(f"{count} {name}  ", state_style(name, silent=name == "silent"))
        text.append(_gist(role, state.workers.of(role, now)), FAINT)
        lines.append(text)
    return lines


def queue_lines(state: MonitorState) -> dict[str, Text]:
    """By the queue's name."""
    lines = {}
    for name, queue in state.queues.items():
        depth = queue.depth
        text = line(f"{name:<22.22}")
        text.append(f"{depth.num_pending:>7,} waiting", "bold" if depth.num_pending else FAINT)
        text.append(f"{depth.num_in_flight:>7,} in hand", "" if depth.num_in_flight else FAINT)
        if queue.oldest_s is not None:
            text.append(f"  oldest {span(queue.oldest_s)}", FAINT)
        lines[name] = text
    return lines


def _gist(role: Role, workers: Sequence[Worker]) -> str:
    """The metrics of those who are heard that say most."""
    totals: Counter[str] = Counter()
    for worker in workers:
        for name, value in worker.metrics.items():
            totals[name] += value  # type: ignore[assignment]
    match role:
        case Role.BROWSER:
            return f"{totals['active']:.0f} of {totals['slots']:.0f} slots busy"
        case Role.POLICY:
            return f"{totals['tokens_per_s']:,.0f} tokens/s, {totals['running']:.0f} running"
        case Role.JUDGE:
            return f"{totals['busy']:.0f} of {totals['slots']:.0f} slots busy"
        case Role.TRAINER:
            return f"{totals['collected']:.0f} of {totals['batch']:.0f} collected"
        case Role.FEEDER:
            return f"{totals['running']:.0f} running, {totals['accepted']:.0f} of {totals['limit']:.0f} accepted"
        case _:
            return workers[0].note if workers else ""


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
