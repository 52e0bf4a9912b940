"""A monitor's state as plain values for JSON: whole, or what has changed since the last time. Pure.

Times are unix seconds, so that a value changes only when something happened; ages are for whoever shows them.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from ops.monitor.alerts.alert import Alert
from ops.monitor.cells import Cell
from ops.monitor.outcomes import Outcome
from ops.monitor.state import MonitorState
from ops.run.naming import shown_name
from schemas.config import Config
from schemas.ids import EpisodeId

Json = dict[str, Any]
T = TypeVar("T")
_MOST_POINTS = 500
"""Of the curve."""
_MOST_SITES = 20
"""With blocks, and of outcomes."""
_NOTHING = object()


class Updates:
    """For one reader: everything first, then differences. Put together by `merged`."""

    def __init__(self) -> None:
        self._sections: Json = {}
        self._revision = 0
        self._episodes: set[EpisodeId] = set()

    def next(self, state: MonitorState, alerts: Sequence[Alert], config: Config, now: float) -> Json:
        """`sections`: those that changed; `cells`: episodes that changed, by name; `gone`: those that are shown no more."""
        present = sections(state, alerts, config, now)
        changed = {name: value for name, value in present.items() if self._sections.get(name, _NOTHING) != value}
        cells = state.cells
        update = {
            "at": round(now, 2),
            "sections": changed,
            "cells": {cell.episode: cell_values(cell) for cell in cells if cell.revision > self._revision},
            "gone": sorted(self._episodes - cells.by_episode.keys()),
        }
        self._sections, self._revision, self._episodes = present, cells.revision, set(cells.by_episode)
        return update


def merged(whole: Json, update: Json) -> Json:
    """What a reader has after an update; begin with an empty one."""
    gone = set(update["gone"])
    cells = {name: cell for name, cell in whole.get("cells", {}).items() if name not in gone} | update["cells"]
    return {"at": update["at"], "sections": whole.get("sections", {}) | update["sections"], "cells": cells}


def sections(state: MonitorState, alerts: Sequence[Alert], config: Config, now: float) -> Json:
    """Everything but the episodes."""
    return {
        "run": shown_name(config),
        "mode": config.feeder_config.mode,
        "alerts": [_alert(alert) for alert in alerts],
        "metrics": metrics(state, config, now),
        "phases": {phase.value: count for phase, count in state.cells.counts().items()},
        "episodes_not_kept": state.cells.num_unkept,
        "workers": _workers(state, now),
        "queues": _queues(state),
        "streams": [msgspec.to_builtins(stream) for stream in state.streams.values()],
        "store": msgspec.to_builtins(state.store),
        "disk": msgspec.to_builtins(state.disk),
        "dead_letters": len(state.letters),
        "blocking": _blocking(state),
        "judging": _judging(state),
        "training": _training(state, config),
        "outcomes": _outcomes(state),
    }


def metrics(state: MonitorState, config: Config, now: float) -> Json:
    """Numbers to read at a glance; None is not known."""
    run = state.run
    return {
        "episodes_judged": run.num_episodes,
        "success": run.success,
        "version": state.version,
        "ends_at": _rounded(state.ends_at(config.feeder_config.num_iterations, now)),
        "num_iterations": config.feeder_config.num_iterations,
        "episodes_ended_per_s": state.ended.per_s(now),
        "episodes_judged_per_s": state.judged.per_s(now),
        "steps_per_s": state.steps.per_s(now),
        "versions_per_h": state.versions_per_h,
        "parse_rate": state.judging.parse_rate,
        "mismatch": run.mismatches[-1] if run.mismatches else None,
        "staleness_mean": run.metrics.get("staleness_mean"),
        "staleness_bound": config.feeder_config.staleness_bound,
        "server_answer_s": state.server.answer_s,
        "server_error": state.server.error,
    }


def cell_values(cell: Cell) -> Json:
    return {
        "episode": cell.episode,
        "task": cell.task,
        "split": cell.split.value,
        "site": cell.site,
        "attempt": cell.attempt,
        "step": cell.step,
        "max_steps": cell.max_steps,
        "version": cell.version,
        "phase": cell.phase.value,
        "since": round(cell.since, 2),
        "admitted_at": round(cell.admitted_at, 2),
        "worker": cell.worker,
        "policy": cell.policy,
        "outcome": cell.outcome.value if cell.outcome else None,
        "verdict": cell.verdict.value if cell.verdict else None,
        "reward": cell.reward,
    }


def _workers(state: MonitorState, now: float) -> list[Json]:
    return [
        {
            "name": worker.name,
            "role": worker.role.value,
            "state": worker.state,
            "note": worker.note,
            "silent": state.workers.is_silent(worker, now),
            "heard_at": round(worker.heard_at, 1),
            "skew_s": round(worker.skew_s, 2),
            "metrics": state.metrics_of(worker),
        }
        for worker in state.workers.in_order()
    ]


def _queues(state: MonitorState) -> list[Json]:
    return [
        {
            "name": queue.name,
            "role": queue.role.value,
            "pending": queue.depth.num_pending,
            "in_flight": queue.depth.num_in_flight,
            "waiting_workers": queue.depth.num_waiting,
            "redelivered": queue.depth.num_redelivered,
            "oldest_s": None if queue.oldest_s is None else round(queue.oldest_s, 1),
        }
        for queue in state.queues.values()
    ]


def _alert(alert: Alert) -> Json:
    condition = alert.condition
    return {
        "kind": condition.key.kind,
        "subject": condition.key.subject,
        "severity": condition.severity.value,
        "sentence": condition.sentence,
        "remedy": condition.remedy,
        "page": condition.page,
        "since": round(alert.since, 1),
    }


def _blocking(state: MonitorState) -> Json:
    """A pair each: visits, and those of them that were blocked."""
    blocking = state.blocking
    return {
        "visits": [blocking.total.number, blocking.total.num_blocked],
        "sites": {site: [visits.number, visits.num_blocked] for site, visits in blocking.most_blocked(_MOST_SITES).items()},
        "egresses": {egress: [visits.number, visits.num_blocked] for egress, visits in blocking.by_egress.items()},
        "providers": dict(blocking.by_provider),
    }


def _judging(state: MonitorState) -> Json:
    spending = state.judging.spending
    return {
        "verdicts": {verdict.value: count for verdict, count in state.judging.counts.items()},
        "error_share": state.judging.error_share,
        "calls": spending.num_calls,
        "failed_requests": spending.num_failures,
        "prompt_tokens": spending.prompt_tokens,
        "completion_tokens": spending.completion_tokens,
        "cost": spending.cost,
        "judged_s": round(spending.judged_s, 2),
    }


def _training(state: MonitorState, config: Config) -> Json:
    curve = state.run.curve(bar=None, num_expected=0)
    return {
        "train": [[point.num_episodes, round(point.success, 4)] for point in thinned(curve.train, _MOST_POINTS)],
        "held_out": [[point.num_episodes, round(point.success, 4)] for point in curve.held_out],
        "rounds": [
            {"version": version, "judged": found.num_judged, "of": state.evaluation_size, "success": round(found.success, 4)}
            for version, found in state.run.evaluations.items()
        ],
        "versions": [[mark.num_episodes, mark.version] for mark in thinned(curve.versions, _MOST_POINTS)],
        "staleness": {str(lag): count for lag, count in state.staleness.items()},
        "batch": config.env_config.train_tasks_rollout_size,
        "metrics": state.run.metrics,
    }


def _outcomes(state: MonitorState) -> Json:
    """Of training episodes: the newest version and the page with least success first."""
    outcomes = state.outcomes
    return {
        "versions": {str(version): _outcome(found) for version, found in outcomes.by_version().items()},
        "pages": {page: _outcome(found) for page, found in list(outcomes.by_page().items())[:_MOST_SITES]},
    }


def _outcome(found: Outcome) -> Json:
    success = None if found.success is None else round(found.success, 4)
    return {"episodes": found.num_episodes, "scored": found.num_scored, "success": success, "steps": round(found.steps, 2)}


def _rounded(at: float | None) -> float | None:
    return None if at is None else round(at)


def thinned(items: Sequence[T], most: int) -> Sequence[T]:
    """At most about `most` of them, evenly, the last one always."""
    if len(items) <= most:
        return items
    step = -(-len(items) // most)
    return [*items[:-1:step], items[-1]]
