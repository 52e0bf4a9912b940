"""Policy versions within and around episodes, and who played them."""

from collections import Counter
from dataclasses import dataclass, field

from ops.analysis.report.episode import ReportedEpisode
from ops.analysis.report.labels import DEMONSTRATION


@dataclass(slots=True)
class Staleness:
    """Of episodes that a policy answered; demonstrations are left out."""

    spans: Counter[int] = field(default_factory=Counter)
    """Episodes by newest minus oldest version that sampled them: more than 0, and weights changed under way."""
    lags: Counter[int] = field(default_factory=Counter)
    """Episodes by version of the last step minus the newest when they were admitted; of a held-out one, minus its round."""

    def add(self, one: ReportedEpisode) -> None:
        versions = one.trajectory.versions
        if not versions or one.kind == DEMONSTRATION:
            return
        self.spans[max(versions) - min(versions)] += 1
        self.lags[versions[-1] - one.task.policy_version] += 1


@dataclass(slots=True)
class Workers:
    """Episodes by browser worker, stored steps by policy worker; empty: the feeder ended it before anybody began."""

    browsers: Counter[str] = field(default_factory=Counter)
    policies: Counter[str] = field(default_factory=Counter)

    def add(self, one: ReportedEpisode) -> None:
        self.browsers[one.trajectory.worker or "(none)"] += 1
        for step in one.steps:
            self.policies[step.request.worker or "(none)"] += 1
