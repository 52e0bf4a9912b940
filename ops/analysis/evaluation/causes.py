"""Names what became of an episode that may be neither a success nor a failure. Pure.

Published figures differ in what they leave out, so a protocol says which of these are apart: blocked, or invalid.
"""

from typing import Literal, get_args

from ops.analysis.report.episode import ReportedEpisode
from schemas.messages import Outcome, Verdict

Chosen = Literal["blocked", "not_opened", "timed_out", "failed", "excluded"]
"""Of these a protocol says what they count as."""
Cause = Literal[Chosen, "cancelled", "judge_error", "unjudged", "missing"]
"""The further ones are always invalid: nobody has looked, or nobody could, and that is no failure of the model."""
CHOSEN: tuple[Chosen, ...] = get_args(Chosen)
WORDS: dict[Cause, str] = {
    "blocked": "blocked by the site",
    "not_opened": "first page not opened",
    "timed_out": "timed out",
    "failed": "browser or policy failed",
    "excluded": "excluded by the judge",
    "cancelled": "cancelled",
    "judge_error": "judge error",
    "unjudged": "not judged",
    "missing": "never played to an end",
}
_BY_OUTCOME: dict[Outcome, Cause] = {
    Outcome.BLOCKED: "blocked",
    Outcome.TIMED_OUT: "timed_out",
    Outcome.CANCELLED: "cancelled",
    Outcome.FAILED: "failed",
}


def cause_of(one: ReportedEpisode) -> Cause | None:
    """None: it is a success or a failure, and nothing else."""
    trajectory, judgement = one.trajectory, one.judgement
    if (scored := one.score) is not None:
        return "not_opened" if trajectory.navigation_error and not scored.success else None
    if trajectory.outcome in _BY_OUTCOME:
        return _BY_OUTCOME[trajectory.outcome]
    if judgement is None:
        return "unjudged"
    if judgement.verdict is Verdict.EXCLUDED:
        return "blocked" if judgement.blocked else "excluded"
    return "judge_error"
