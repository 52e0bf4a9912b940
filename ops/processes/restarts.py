"""Decides whether and when a role that ended is started again: a state machine over exit codes and seconds."""

from dataclasses import dataclass, replace
from signal import SIGUSR1

EXIT_FATAL = 78
"""Exit code of a role whose mistake only a person can mend (sysexits: EX_CONFIG)."""

EXIT_RESTART = 75
"""Exit code of a worker that left in order to be started anew (sysexits: EX_TEMPFAIL). No crash."""
_EXIT_DRAINED_EARLY = 128 + SIGUSR1
"""A worker that was told to leave before it could listen to that: it held nothing."""


@dataclass(frozen=True, kw_only=True)
class RestartPolicy:
    """Delays double from the first to the longest; a role that stayed up long enough begins again at the first."""

    first_delay_s: float = 0.2
    longest_delay_s: float = 10.0
    healthy_after_s: float = 30.0


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The role's work is complete."""


@dataclass(frozen=True, kw_only=True)
class Fatal:
    """Starting it again would end the same way."""


@dataclass(frozen=True, kw_only=True)
class Restart:
    delay_s: float


@dataclass(frozen=True, kw_only=True)
class Restarts:
    """What is remembered of one role's ends."""

    policy: RestartPolicy = RestartPolicy()
    num_restarts: int = 0
    num_quick_crashes: int = 0
    """Crashes in a row that each came before the role was up for `healthy_after_s`."""

    def after_exit(self, code: int, ran_s: float) -> "tuple[Restarts, Finished | Fatal | Restart]":
        """Decides on one end: exit code (128 + n after signal n) and seconds that the role was up."""
        if code in (0, _EXIT_DRAINED_EARLY):
            return self, Finished()
        if code == EXIT_RESTART:
            return self, Restart(delay_s=0.0)
        if code == EXIT_FATAL:
            return self, Fatal()
        quick = 0 if ran_s >= self.policy.healthy_after_s else self.num_quick_crashes
        # Bounded exponent: thousands of crashes must not overflow.
        delay_s = min(self.policy.first_delay_s * 2.0 ** min(quick, 16), self.policy.longest_delay_s)
        after = replace(self, num_restarts=self.num_restarts + 1, num_quick_crashes=quick + 1)
        return after, Restart(delay_s=delay_s)
