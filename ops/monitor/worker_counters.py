"""Which of the figures that workers tell of themselves only rise while the worker lives; all others rise and fall. Pure.

The names are those of docs/monitor.md. Each is the same however long a run is, so that what is made of them is bounded.
"""

from collections.abc import Mapping

from schemas.messages import Role, Verdict

_OF_EVERY = frozenset({"cpu_s", "unexpected", "records_skipped"})
COUNTERS: Mapping[Role, frozenset[str]] = {
    Role.FEEDER: frozenset({"admitted", "accepted"}),
    Role.BROWSER: frozenset(
        {
            *("steps_taken", "episodes", "steps", "failures", "blocked", "navigation_errors", "other_identities"),
            *("reset_s", "observe_s", "policy_s", "act_s", "turn_wait_s"),
            *(
                "sessions_opened",
                "sessions_lost",
                "sessions_swept",
                "session_failures",
                "session_s",
                "session_wait_s",
                "session_proxy_mb",
            ),
        }
    ),
    Role.POLICY: frozenset({"answered", "refused"}),
    Role.JUDGE: frozenset(
        {
            *(verdict.value for verdict in Verdict),
            *("calls", "answers_without_verdict", "failed_requests", "tokens", "cost"),
        }
    ),
}


def only_rises(role: Role, name: str) -> bool:
    return name in _OF_EVERY or name in COUNTERS.get(role, ())
