"""Success and reward, by what an episode is counted under."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ops.analysis.report.episode import ReportedEpisode
from ops.analysis.report.labels import (
    difficulty_of,
    distribution_of,
    domain_of,
    family_of,
    published_split_of,
    site_label,
    version_of,
)
from ops.statistics.shares import Share


@dataclass(slots=True)
class Tally:
    """Counts of some episodes."""

    num_episodes: int = 0
    num_scored: int = 0
    """With a verdict of success or failure: what success and reward are shares and means of."""
    num_successes: int = 0
    reward_sum: float = 0.0
    num_steps: int = 0
    num_unparsed: int = 0

    def add(self, one: ReportedEpisode) -> None:
        self.num_episodes += 1
        self.num_steps += one.trajectory.num_steps
        self.num_unparsed += one.trajectory.num_unparsed
        if (scored := one.score) is not None:
            self.num_scored += 1
            self.num_successes += scored.success
            self.reward_sum += scored.reward

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(getattr(self, name) + getattr(other, name) for name in Tally.__slots__))

    @property
    def success(self) -> Share:
        return Share(self.num_successes, self.num_scored)

    @property
    def reward(self) -> float | None:
        return self.reward_sum / self.num_scored if self.num_scored else None

    @property
    def parsed(self) -> Share:
        """Of the steps."""
        return Share(self.num_steps - self.num_unparsed, self.num_steps)


Tallies = dict[str, Tally]
"""By kind of episode."""


@dataclass(slots=True)
class Success:
    """By kind, and within each grouping by label and kind."""

    overall: Tallies = field(default_factory=dict)
    by_difficulty: dict[str, Tallies] = field(default_factory=dict)
    by_distribution: dict[str, Tallies] = field(default_factory=dict)
    by_published_split: dict[str, Tallies] = field(default_factory=dict)
    by_domain: dict[str, Tallies] = field(default_factory=dict)
    by_site: dict[str, Tallies] = field(default_factory=dict)
    by_family: dict[str, Tallies] = field(default_factory=dict)
    by_version: dict[int, Tallies] = field(default_factory=dict)

    def add(self, one: ReportedEpisode) -> None:
        task, kind = one.task, one.kind
        for tallies in (
            self.overall,
            self.by_difficulty.setdefault(difficulty_of(task), {}),
            self.by_distribution.setdefault(distribution_of(task), {}),
            self.by_published_split.setdefault(published_split_of(task), {}),
            self.by_domain.setdefault(domain_of(task), {}),
            self.by_site.setdefault(site_label(task), {}),
            self.by_family.setdefault(family_of(task), {}),
            self.by_version.setdefault(version_of(one.trajectory), {}),
        ):
            tallies.setdefault(kind, Tally()).add(one)


def total(tallies: Mapping[str, Tally]) -> Tally:
    return sum(tallies.values(), Tally())
