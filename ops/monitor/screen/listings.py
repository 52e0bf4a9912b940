"""Listings of the terminal view that take what room there is, a line each: workers, and what came of episodes. Pure."""

from collections.abc import Mapping, Sequence
from itertools import islice

from rich.text import Text

from ops.monitor.outcomes import Outcome, Outcomes
from ops.monitor.screen.colours import FAINT, state_style
from ops.monitor.screen.figures import figures, share
from ops.monitor.screen.lines import line
from ops.monitor.state import MonitorState

_LEAST = 4
"""Lines of a listing that is worth its place: a gap, a heading, an entry, a count of the others."""
_NEWEST = 6
"""Versions."""


def worker_lines(state: MonitorState, now: float, room: int) -> list[Text]:
    """Those in trouble first; what has no room is counted."""
    if room < _LEAST:
        return []
    workers = state.workers.by_attention(now)
    shown = workers if len(workers) < room else workers[: room - 2]
    lines = [line()]
    for worker in shown:
        silent = state.workers.is_silent(worker, now)
        text = line(f"{worker.name:<18.18} ")
        text.append(f"{'silent' if silent else worker.state:<9.9} ", state_style(worker.state, silent=silent))
        text.append(f"{worker.note}  " if worker.note else "")
        text.append(figures(worker.role, state.metrics_of(worker)), FAINT)
        lines.append(text)
    return [*lines, *_others(len(workers) - len(shown), "workers: press 3")]


def outcome_lines(outcomes: Outcomes, room: int) -> list[Text]:
    """Training episodes of the newest versions, and lately of each page or site."""
    newest = {f"v{version}": found for version, found in islice(outcomes.by_version().items(), _NEWEST)}
    versions = _outcomes("version", newest, room)
    return [*versions, *_outcomes("page or site, lately", outcomes.by_page(), room - len(versions))]


def _outcomes(heading: str, outcomes: Mapping[str, Outcome], room: int) -> list[Text]:
    if not outcomes or room < _LEAST:
        return []
    shown = list(outcomes.items())
    shown = shown if len(shown) <= room - 2 else shown[: room - 3]
    lines = [line(), _row(heading, ("episodes", "success", "steps"), FAINT)]
    lines += [_row(name, (f"{of.num_episodes:,}", share(of.success), f"{of.steps:.1f}")) for name, of in shown]
    return [*lines, *_others(len(outcomes) - len(shown), "of them")]


def _row(name: str, values: Sequence[str], style: str = "") -> Text:
    return line(f"{name:<40.40}" + "".join(f"{value:>9}" for value in values), style)


def _others(count: int, of: str) -> list[Text]:
    return [line(f"and {count:,} more {of}", FAINT)] if count else []
