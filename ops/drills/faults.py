"""Draws faults from a seed as a Poisson process: which, when, and to whom. Pure; `ops.drills.injection` carries it out."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from schemas.errors import ConfigurationError

_LARGEST_SHIFT_S = 30 * 86400.0


class FaultKind(StrEnum):
    KILL = "kill"
    """SIGKILL of a worker."""
    STOP = "stop"
    """SIGSTOP of a worker, SIGCONT before its lease has run out."""
    EXPIRE = "expire"
    """SIGSTOP of a worker, SIGCONT after its lease: the expired owner wakes up and has to be fenced."""
    CUT = "cut"
    """A worker's connections to the server are closed."""
    BLACKHOLE = "blackhole"
    """A worker's connections stay open and carry nothing."""
    SLOW_DISK = "slow-disk"
    """Every write and sync of a server is delayed."""
    KILL_SERVER = "kill-server"
    STOP_SERVER = "stop-server"
    KILL_LEADER = "kill-leader"
    """SIGKILL of the cluster's member that leads a stream of the run at this moment."""
    KILL_CHROMIUM = "kill-chromium"
    """SIGKILL of a browser worker's Chromium."""
    BREAK_WEIGHTS = "break-weights"
    """A policy cannot load versions for a while, as if its files were damaged."""
    AGE = "age"
    """SIGSTOP of all workers of a role, SIGCONT after all that stood in STEPS, HEARTBEATS and ADVISORIES has aged out."""
    CLOCK = "clock"
    """A worker's wall clock jumps, and stays there."""

    @classmethod
    def named(cls, names: Sequence[str]) -> "tuple[FaultKind, ...]":
        """Raises `ConfigurationError` for a name that is none of these."""
        unknown = [name for name in names if name not in set(cls)]
        if unknown:
            raise ConfigurationError(f"there is no fault {unknown[0]!r}: write some of {', '.join(cls)}")
        return tuple(cls(name) for name in names)


NO_EXCUSE = frozenset({FaultKind.CLOCK})
"""Faults that hold nobody up: they explain no wait."""
SERVER_FAULTS = frozenset({FaultKind.SLOW_DISK, FaultKind.KILL_SERVER, FaultKind.STOP_SERVER, FaultKind.KILL_LEADER})


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault that is to happen."""

    after_s: float
    """Seconds after the one before it."""
    kind: FaultKind
    victim: str
    """Name of a worker or server, or a role whose workers are meant; empty: whoever leads when it happens."""
    duration_s: float = 0.0
    shift_s: float = 0.0
    """Of a clock, from the right time."""


@dataclass(frozen=True, slots=True)
class Injected:
    """One fault that has happened."""

    at: float
    """Unix seconds."""
    kind: FaultKind
    victim: str
    pid: int
    duration_s: float
    shift_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Durations:
    """Ranges in seconds from which a fault's duration is drawn evenly."""

    stop: tuple[float, float] = (0.3, 2.0)
    expire: tuple[float, float] = (7.0, 9.0)
    """Longer than every lease of the drill."""
    blackhole: tuple[float, float] = (1.0, 8.0)
    slow_disk: tuple[float, float] = (1.0, 4.0)
    stop_server: tuple[float, float] = (0.3, 3.0)
    break_weights: tuple[float, float] = (0.3, 10.0)
    age: tuple[float, float] = (8.0, 10.0)
    """Longer than what ages in a drill is kept."""

    def of(self, kind: FaultKind) -> tuple[float, float]:
        ranges = {
            FaultKind.STOP: self.stop,
            FaultKind.EXPIRE: self.expire,
            FaultKind.BLACKHOLE: self.blackhole,
            FaultKind.SLOW_DISK: self.slow_disk,
            FaultKind.STOP_SERVER: self.stop_server,
            FaultKind.BREAK_WEIGHTS: self.break_weights,
            FaultKind.AGE: self.age,
        }
        return ranges.get(kind, (0.0, 0.0))


def faults(
    *, seed: int, mean_interval_s: float, victims: Mapping[FaultKind, Sequence[str]], durations: Durations
) -> Iterator[Fault]:
    """Faults for ever: the kinds that have victims evenly, then the victims evenly.

    Raises:
        ConfigurationError: no kind has a victim.
    """
    kinds = [kind for kind in FaultKind if victims.get(kind)]
    if not kinds:
        raise ConfigurationError("there is nothing that these faults could happen to: choose other kinds")
    draw = random.Random(f"faults|{seed}")  # noqa: S311 - nothing secret is drawn
    while True:
        kind = draw.choice(kinds)
        yield Fault(
            after_s=draw.expovariate(1.0 / mean_interval_s),
            kind=kind,
            victim=draw.choice(list(victims[kind])),
            duration_s=draw.uniform(*durations.of(kind)),
            shift_s=_drawn_shift_s(draw) if kind is FaultKind.CLOCK else 0.0,
        )


def _drawn_shift_s(draw: random.Random) -> float:
    """A second or days, ahead or behind: every order of magnitude alike."""
    size_s: float = _LARGEST_SHIFT_S ** draw.random()
    return round(draw.choice((-size_s, size_s)), 3)
