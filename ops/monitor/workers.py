"""The workers of a run, from their heartbeats: who is heard, and who gets on. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from schemas.ids import WorkerId
from schemas.messages import Heartbeat, Role
from schemas.text import visible

_WORD = 128
_MOST_METRICS = 200
_DIGITS = re.compile(r"(\d{1,18})")
_LONGEST_UNHEARD_S = 15.0
"""Heartbeats are stored for so long."""
_PROGRESS: Mapping[Role, tuple[str, ...]] = {
    Role.FEEDER: ("admitted", "accepted"),
    Role.BROWSER: ("episodes", "steps", "steps_taken"),
    Role.POLICY: ("answered",),
    Role.JUDGE: ("success", "failure", "excluded", "error", "calls"),
    Role.TRAINER: ("version", "collected", "trained", "updates"),
    Role.ARCHIVER: ("episodes", "judgements"),
}
"""Metrics that change when a worker gets on."""


@dataclass(slots=True)
class Worker:
    name: WorkerId
    role: Role
    state: str
    note: str
    metrics: dict[str, float]
    heard_at: float
    first_heard_at: float
    progressed_at: float
    """When its work was last seen to get on; when it was first heard, to begin with."""
    skipped: str = ""
    """The record that it left out last."""
    skew_s: float = 0.0
    """Its clock minus the server's."""


@dataclass
class Workers:
    silent_s: float
    forgotten_s: float
    by_name: dict[WorkerId, Worker] = field(default_factory=dict)

    def heard(self, beat: Heartbeat, *, stored_at: float, now: float) -> None:
        """`stored_at`: by the server's clock; 0: it did not say."""
        heard_at = now - min(_LONGEST_UNHEARD_S, max(0.0, now - stored_at)) if stored_at else now
        known = self.by_name.get(beat.worker)
        progressed = known is None or _progress(beat.role, beat.metrics) != _progress(beat.role, known.metrics)
        self.by_name[beat.worker] = Worker(
            name=WorkerId(visible(beat.worker, _WORD)),
            role=beat.role,
            state=visible(beat.state, _WORD),
            note=visible(beat.note),
            skipped=visible(beat.skipped),
            metrics={visible(name, _WORD): value for name, value in list(beat.metrics.items())[:_MOST_METRICS]},
            heard_at=heard_at,
            first_heard_at=known.first_heard_at if known else heard_at,
            progressed_at=heard_at if progressed or known is None else known.progressed_at,
            skew_s=beat.at - stored_at if stored_at and beat.at else 0.0,
        )

    def expire(self, now: float) -> None:
        gone = [name for name, worker in self.by_name.items() if now - worker.heard_at > self.forgotten_s]
        for name in gone:
            del self.by_name[name]

    def is_silent(self, worker: Worker, now: float) -> bool:
        return now - worker.heard_at > self.silent_s

    def of(self, role: Role, now: float) -> list[Worker]:
        """Those that are heard."""
        return [worker for worker in self.by_name.values() if worker.role is role and not self.is_silent(worker, now)]

    def in_order(self) -> list[Worker]:
        """By role, and the tenth behind the ninth."""
        order = {role: index for index, role in enumerate(Role)}
        return sorted(self.by_name.values(), key=lambda worker: (order[worker.role], _by_number(worker.name)))

    def by_attention(self, now: float) -> list[Worker]:
        """Those in trouble first: silent, then paused, then with errors that nobody foresaw; all in order."""

        def trouble(worker: Worker) -> int:
            signs = (self.is_silent(worker, now), worker.state == "paused", worker.metrics.get("unexpected", 0.0) > 0)
            return signs.index(True) if any(signs) else len(signs)

        return sorted(self.in_order(), key=trouble)


def _by_number(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (0, part) for part in _DIGITS.split(name[:_WORD])]


def summed(workers: Iterable[Worker], metric: str) -> float:
    return sum(worker.metrics.get(metric, 0.0) for worker in workers)


def _progress(role: Role, metrics: Mapping[str, float]) -> tuple[float, ...]:
    return tuple(metrics.get(name, 0.0) for name in _PROGRESS.get(role, ()))
