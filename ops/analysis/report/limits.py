"""Success if fewer steps had been allowed: a success that took m steps is one under every limit of m or more."""

from collections import Counter
from dataclasses import dataclass, field

from ops.analysis.report.episode import ReportedEpisode
from ops.statistics.shares import Share


@dataclass(slots=True)
class Limited:
    num_scored: int = 0
    successes: Counter[int] = field(default_factory=Counter)
    """By the steps that they took."""
    most_steps: int = 0
    """Of any scored episode."""

    def curve(self) -> list[Share]:
        """Under a limit of 1, 2, ... steps, up to the longest scored episode."""
        shares, hits = [], self.successes[0]
        for limit in range(1, self.most_steps + 1):
            hits += self.successes[limit]
            shares.append(Share(hits, self.num_scored))
        return shares


@dataclass(slots=True)
class StepLimits:
    """By kind of episode."""

    by_kind: dict[str, Limited] = field(default_factory=dict)

    def add(self, one: ReportedEpisode) -> None:
        if (scored := one.score) is None:
            return
        limited, num_steps = self.by_kind.setdefault(one.kind, Limited()), one.trajectory.num_steps
        limited.num_scored += 1
        limited.most_steps = max(limited.most_steps, num_steps)
        limited.successes[num_steps] += scored.success
