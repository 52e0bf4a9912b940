"""A condition holds at one moment; an alert has held for a while, and stays until it has not held for a while. Pure."""

import enum
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

_PAGE = "docs/operations.md"


class Severity(enum.Enum):
    """In the order in which they are shown."""

    CRITICAL = "critical"
    """The run stands still, or soon will, or what it makes is in doubt."""
    WARNING = "warning"
    """Somebody should look before it gets worse."""
    NOTE = "note"


class Key(NamedTuple):
    """What one alert is about; it is the same as long as the alert lasts."""

    kind: str
    """As in `role_missing`: also the section of the page, with hyphens."""
    subject: str = ""
    """A role, worker, queue or stream."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    key: Key
    severity: Severity
    sentence: str
    remedy: str
    """What to do."""
    after_s: float | None = None
    """It becomes an alert when it has held for so long; None: for `monitor_config.raise_after_s`."""

    @property
    def page(self) -> str:
        """Where more is said."""
        return f"{_PAGE}#{self.key.kind.replace('_', '-')}"


@dataclass(frozen=True, kw_only=True)
class Alert:
    condition: Condition
    """As it was when it last held."""
    since: float
    """When it began to hold."""


def above(value: float, bound: float, *, raised: bool) -> bool:
    """Whether a value is too high, or no number. Once it was, it has to fall a tenth below the bound."""
    return not value <= (0.9 * bound if raised else bound)


def below(value: float, bound: float, *, raised: bool) -> bool:
    """Whether a share is too low. Once it was, it has to come back a tenth of the way from the bound to 1."""
    return value < (bound + 0.1 * (1.0 - bound) if raised else bound)


@dataclass
class AlertBook:
    """Conditions over time; call `update` every few seconds with all that hold."""

    raise_after_s: float
    clear_after_s: float
    patient: bool = True
    """False: every condition that holds is an alert at once, for a single look."""
    _held: dict[Key, Alert] = field(default_factory=dict)
    """With the time since when, raised or not."""
    _gone_at: dict[Key, float] = field(default_factory=dict)
    """Since when those of `_held` do not hold."""
    _raised: set[Key] = field(default_factory=set)

    @property
    def raised(self) -> Collection[Key]:
        return self._raised

    @property
    def alerts(self) -> list[Alert]:
        """Most severe first, then the oldest."""
        order = list(Severity)
        found = [self._held[key] for key in self._raised]
        return sorted(found, key=lambda alert: (order.index(alert.condition.severity), alert.since, alert.condition.key))

    def update(self, conditions: Iterable[Condition], now: float) -> list[Alert]:
        holding = {condition.key: condition for condition in conditions}
        for key, condition in holding.items():
            self._gone_at.pop(key, None)
            known = self._held.get(key)
            alert = self._held[key] = Alert(condition=condition, since=known.since if known else now)
            after_s = self.raise_after_s if condition.after_s is None else condition.after_s
            if now - alert.since >= after_s or not self.patient:
                self._raised.add(key)
        for key in [key for key in self._held if key not in holding]:
            gone_at = self._gone_at.setdefault(key, now)
            if key not in self._raised or now - gone_at >= self.clear_after_s:
                self._raised.discard(key)
                del self._held[key], self._gone_at[key]
        return self.alerts
