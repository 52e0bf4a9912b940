"""Holds what the terminal display shows at one moment, as one value: whoever watches the run fills it in."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RoleRow:
    worker: str
    state: str
    """One word, as in heartbeats: starting, waiting, working, loading, training, draining; or how the process ended."""
    note: str = ""
    num_restarts: int = 0


@dataclass(frozen=True, kw_only=True)
class Progress:
    """One piece of long work."""

    label: str
    done: float
    total: float | None = None
    """None: it is not known how much there is."""
    note: str = ""

    @property
    def share(self) -> float | None:
        return None if not self.total else min(1.0, max(0.0, self.done / self.total))


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    num_episodes: int
    success: float
    """0 to 1."""


@dataclass(frozen=True, kw_only=True)
class VersionMark:
    """A checkpoint had learnt from so many episodes."""

    num_episodes: int
    version: int


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Success over episodes."""

    train: tuple[CurvePoint, ...] = ()
    """Moving mean of training episodes."""
    held_out: tuple[CurvePoint, ...] = ()
    """Evaluations on held-out tasks."""
    versions: tuple[VersionMark, ...] = ()
    bar: float | None = None
    """Success to be reached."""
    bar_label: str = ""
    """What that is, written on its line."""
    num_expected: int = 0
    """Episodes that the axis is to hold from the beginning."""
    title: str = "success of training episodes"
    unit: str = "episodes"
    """What is counted along the axis."""


@dataclass(frozen=True, kw_only=True)
class Feed:
    """What is being played while there is no curve yet."""

    title: str
    pages: tuple[tuple[str, int], ...] = ()
    """Names, and how many of their episodes have ended."""
    latest: tuple[str, ...] = ()
    """A line each, newest first."""
    waits_for: str = ""
    """Said before there are any."""


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """Numbers to read at a glance; None is not shown."""

    num_episodes: int = 0
    success: float | None = None
    success_window: int = 0
    """Latest episodes that `success` is the mean of."""
    version: int | None = None
    staleness: float | None = None
    """Mean versions that the last training iteration's samples lagged behind."""
    max_staleness: int | None = None
    parse_rate: float | None = None
    mismatch: float | None = None
    """Mean absolute difference of log-probabilities, nats."""
    queue_depth: int | None = None
    """Steps that wait for a policy worker."""
    episodes_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class View:
    title: str
    phases: tuple[str, ...] = ()
    phase: int = 0
    """Index of the present one; `len(phases)`: all are done."""
    remark: str = ""
    elapsed_s: float = 0.0
    roles: tuple[RoleRow, ...] = ()
    progress: tuple[Progress, ...] = ()
    curve: Curve | None = None
    """None: there is none to be drawn."""
    feed: Feed | None = None
    """In the place of the curve."""
    metrics: Metrics | None = None
