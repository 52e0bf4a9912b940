"""Bounds the waits of a drill, given the faults that fell into them. Pure.

Without a fault nobody waits longer than `PATIENCE_S`. Every fault that can hold up what is waited for may cost the waiting one
a lease (what the dead one held comes back only then), the fault's own duration, and the time that a process or server takes to
be up again. What processes do takes longer where they share the machine: as much as was measured, see `ops.drills.slowness`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ops.audit.waits import Wait, Waiting
from ops.drills.faults import NO_EXCUSE, SERVER_FAULTS, FaultKind, Injected

PATIENCE_S = 8.0
"""Retry delays and restarts."""
RESTART_S = 8.0
"""Until a killed process, or a server with its streams, serves again."""
SlownessBetween = Callable[[float, float], float]
"""How much slower processes ran from one Unix second to another."""

_ROLES: Mapping[Waiting, tuple[str, ...]] = {
    Waiting.TAKEOVER: ("browser", "server"),
    Waiting.ANSWER: ("policy", "browser", "server"),
    Waiting.END: ("policy", "browser", "feeder", "server"),
    Waiting.JUDGEMENT: ("judge", "browser", "server"),
}
"""Whose faults hold a wait up: an end is published by its browser before a judge can see it."""


@dataclass(frozen=True, kw_only=True)
class Late:
    """A wait that no injected fault explains."""

    wait: Wait
    bound_s: float

    def __str__(self) -> str:
        wait = self.wait
        return f"{wait.episode}: {wait.seconds:.1f} s until its {wait.what.value}; the faults explain {self.bound_s:.1f} s"


def bound_s(wait: Wait, faults: Iterable[Injected], *, lease_s: float, slowness: float = 1.0) -> float:
    """Seconds that this wait may take."""
    total, restart_s = PATIENCE_S * slowness, RESTART_S * slowness
    for fault in faults:
        # A fault that was over long before the wait began cannot have held it up; what it held comes back within a lease.
        ended = fault.at + fault.duration_s + restart_s + lease_s
        if fault.kind in NO_EXCUSE:
            continue
        concerned = fault.kind in SERVER_FAULTS or fault.victim.partition("-")[0] in _ROLES[wait.what]
        if concerned and fault.at <= wait.ended_s and ended >= wait.began_s:
            total += lease_s + fault.duration_s + restart_s
    return total


def late(
    waits: Iterable[Wait],
    faults: Sequence[Injected],
    *,
    leases_s: Mapping[Waiting, float],
    slowness: SlownessBetween = lambda began_s, ended_s: 1.0,
) -> tuple[Late, ...]:
    found = []
    for wait in waits:
        if wait.seconds > PATIENCE_S:
            slower = slowness(wait.began_s, wait.ended_s)
            bound = bound_s(wait, faults, lease_s=leases_s[wait.what], slowness=slower)
            if wait.seconds > bound:
                found.append(Late(wait=wait, bound_s=bound))
    return tuple(found)


def kinds_counted(faults: Iterable[Injected]) -> dict[FaultKind, int]:
    counts: dict[FaultKind, int] = {}
    for fault in faults:
        counts[fault.kind] = counts.get(fault.kind, 0) + 1
    return dict(sorted(counts.items()))
