"""Classifies failures. Every episode without a success has exactly one cause. Pure."""

import re
from collections import Counter
from dataclasses import dataclass, field

from ops.analysis.calibration.comparison import deciding
from ops.analysis.report.episode import ReportedEpisode
from schemas.messages import Judgement, Outcome, Trajectory, Verdict

UNJUDGED = "not judged"
NOT_OPENED = "first page not opened"
UNPARSED = "unparsed output"
_BY_OUTCOME = {
    Outcome.BLOCKED: "blocked by the site",
    Outcome.TIMED_OUT: "timed out",
    Outcome.CANCELLED: "cancelled",
    Outcome.FAILED: "browser or policy failed",
    Outcome.STEP_LIMIT: "step limit",
    Outcome.UNREADABLE: UNPARSED,
    Outcome.ANSWERED: "wrong answer",
    Outcome.DONE: "wrong end of the page",
}
_MOST_REASONS = 1000
OTHER = "other reasons"
_LONGEST_REASON = 100
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def cause_of(trajectory: Trajectory, judgement: Judgement | None) -> tuple[str, str] | None:
    """Cause and reason; None: a success."""
    ended = _BY_OUTCOME[trajectory.outcome]
    if not trajectory.outcome.finished:
        return ended, reason(trajectory.error)
    if judgement is None:
        return UNJUDGED, ""
    match judgement.verdict:
        case Verdict.SUCCESS:
            return None
        case Verdict.ERROR:
            return "judge error", reason(judgement.error)
        case Verdict.EXCLUDED:
            cause = _BY_OUTCOME[Outcome.BLOCKED] if judgement.blocked else "excluded by the judge"
            return cause, reason(judgement.error)
        case Verdict.FAILURE:
            return _failure(trajectory, judgement, ended)


def _failure(trajectory: Trajectory, judgement: Judgement, ended: str) -> tuple[str, str]:
    if trajectory.navigation_error:
        return NOT_OPENED, reason(trajectory.navigation_error)
    if trajectory.outcome is Outcome.UNREADABLE:
        return UNPARSED, reason(trajectory.error)
    if 2 * trajectory.num_unparsed > trajectory.num_steps:
        return UNPARSED, "more than half of the steps"
    stage = deciding(judgement)
    return ended, f"not passed: {stage.stage}" if stage else ""


def reason(error: str) -> str:
    """Its first line without addresses and numbers, so that equal errors about different pages are one reason.

    >>> reason("timeout 30 s at http://a/b")
    'timeout # s at <address>'
    """
    line = next(iter(error.strip().splitlines()), "")
    return _NUMBER.sub("#", _ADDRESS.sub("<address>", line))[:_LONGEST_REASON]


@dataclass(slots=True)
class Causes:
    """By kind of episode: how many had each cause, and each reason of it."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    """By cause, all kinds together; what comes after a thousand different ones counts as other."""
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    """By outcome, then by verdict."""

    def add(self, one: ReportedEpisode) -> None:
        verdict = one.judgement.verdict.value if one.judgement else UNJUDGED
        self.outcomes.setdefault(one.trajectory.outcome.value, Counter())[verdict] += 1
        found = cause_of(one.trajectory, one.judgement)
        if found is None:
            return
        cause, why = found
        self.counts.setdefault(one.kind, Counter())[cause] += 1
        reasons = self.reasons.setdefault(cause, Counter())
        if why:
            reasons[why if why in reasons or len(reasons) < _MOST_REASONS else OTHER] += 1
