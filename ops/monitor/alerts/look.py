"""Holds what alert rules are given: the state at one moment, the run's configuration and the alerts that are raised."""

from collections.abc import Collection
from dataclasses import dataclass

from ops.monitor.alerts.alert import Condition, Key, Severity, above, below
from ops.monitor.state import MonitorState
from schemas.config import Config
from schemas.monitor_config import MonitorConfig


@dataclass(frozen=True, kw_only=True)
class Look:
    state: MonitorState
    config: Config
    now: float
    raised: Collection[Key] = ()

    @property
    def bounds(self) -> MonitorConfig:
        return self.config.monitor_config

    @property
    def trains(self) -> bool:
        """Whether versions are still to come."""
        feeder = self.config.feeder_config
        return feeder.mode in ("sync", "async", "offline") and self.state.version < feeder.num_iterations

    def is_above(self, value: float, bound: float, key: Key) -> bool:
        return above(value, bound, raised=key in self.raised)

    def is_below(self, value: float, bound: float, key: Key) -> bool:
        return below(value, bound, raised=key in self.raised)


def critical(key: Key, sentence: str, remedy: str, *, after_s: float | None = None) -> Condition:
    return Condition(key=key, severity=Severity.CRITICAL, sentence=sentence, remedy=remedy, after_s=after_s)


def warning(key: Key, sentence: str, remedy: str, *, after_s: float | None = None) -> Condition:
    return Condition(key=key, severity=Severity.WARNING, sentence=sentence, remedy=remedy, after_s=after_s)


def note(key: Key, sentence: str, remedy: str, *, after_s: float | None = None) -> Condition:
    return Condition(key=key, severity=Severity.NOTE, sentence=sentence, remedy=remedy, after_s=after_s)


def span(seconds: float) -> str:
    """A time for people: 45 s, 12 min, 3.5 h."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
