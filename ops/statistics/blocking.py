"""How often sites keep the agent out: by site, by the egress that was used, and by who guards the site. Pure.

A visit is an attempt at an episode on its own site: the last one, and those before it that were given up over a block.
"""

from collections import Counter
from dataclasses import dataclass, field

from ops.statistics.shares import Share
from schemas.messages import Blockage, Outcome, Trajectory
from schemas.site import site_of

DIRECT = "direct"
"""In place of an egress where there was none."""
JUDGE = "judge"
"""In place of a provider where a judge alone saw the block."""
OTHER = "other"
"""In place of every label beyond those that are kept."""


@dataclass(slots=True)
class Visits:
    number: int = 0
    num_blocked: int = 0

    @property
    def blocked(self) -> Share:
        return Share(self.num_blocked, self.number)


@dataclass(slots=True)
class Blocking:
    most: int = 1000
    """Sites, and egresses, that are kept one by one."""
    total: Visits = field(default_factory=Visits)
    by_site: dict[str, Visits] = field(default_factory=dict)
    by_egress: dict[str, Visits] = field(default_factory=dict)
    by_provider: Counter[str] = field(default_factory=Counter)
    """Visits that were blocked."""
    num_elsewhere: int = 0
    """Blocks of other sites than an episode's own."""
    num_lifted: int = 0

    def add(self, trajectory: Trajectory, *, ruled_blocked: bool = False) -> None:
        """`ruled_blocked`: a judge said that it was."""
        self.num_elsewhere += sum(met.elsewhere for met in trajectory.blockages)
        self.num_lifted += sum(met.lifted for met in trajectory.blockages)
        by_attempt = {met.attempt: met for met in trajectory.blockages if not met.elsewhere and not met.lifted}
        ended_blocked = trajectory.outcome is Outcome.BLOCKED or ruled_blocked
        last = by_attempt.pop(trajectory.attempt, None)
        site = site_of(trajectory.task.website)
        self._count(site, trajectory.egress, _provider(last) if ended_blocked else "")
        for met in by_attempt.values():
            self._count(site, met.egress, met.provider)

    def _count(self, site: str, egress: str, provider: str) -> None:
        """`provider`: empty where the visitor was let in."""
        self.by_provider.update([provider] if provider else ())
        for visits in (self.total, self._kept(self.by_site, site), self._kept(self.by_egress, egress or DIRECT)):
            visits.number += 1
            visits.num_blocked += bool(provider)

    def _kept(self, visits: dict[str, Visits], label: str) -> Visits:
        return visits.setdefault(label if label in visits or len(visits) < self.most else OTHER, Visits())

    def most_blocked(self, most: int) -> dict[str, Visits]:
        """Sites with blocks, most of them first."""
        blocked = [(site, visits) for site, visits in self.by_site.items() if visits.num_blocked]
        return dict(sorted(blocked, key=lambda each: (-each[1].num_blocked, each[0]))[:most])


def _provider(met: Blockage | None) -> str:
    return met.provider if met is not None else JUDGE
