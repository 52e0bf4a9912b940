"""Sites that are left out of training for a while, because they blocked the agent: kept on the bus, for the run's feeders.

The newest word on a site counts, so whoever blocks it later, or lifts the block, needs to know nothing of the ones before.
Of the clock of whoever says it only the length of a block counts: it begins when the server stored it, by the server's clock.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from bus.ports import Bus
from bus.subjects import Subjects
from schemas.ids import EpisodeId
from schemas.messages import SiteBlock

_LAST_S = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()


def end_of(entry: SiteBlock) -> datetime:
    """When a block is over, in UTC; a date that no calendar has is the last one that it has."""
    return datetime.fromtimestamp(min(entry.until, _LAST_S), UTC)


async def block(
    bus: Bus, subjects: Subjects, site: str, *, hours: float, reason: str, episode: EpisodeId | None = None
) -> SiteBlock:
    """Leaves a site out from now on; 0 hours: not any more. Returns what was written, by this machine's clock."""
    now = time.time()
    entry = SiteBlock(site=site, until=now + hours * 3600.0, reason=reason, episode=episode or EpisodeId(""), at=now)
    await bus.append(subjects.blocklist, subjects.blocked(site), entry)
    return entry


async def read_blocklist(bus: Bus, subjects: Subjects) -> "Blocklist":
    """The list as it is now."""
    found = Blocklist()
    for record in await bus.history(subjects.blocklist, subjects.everything("blocked")):
        if isinstance(record.message, SiteBlock):
            found.apply(record.message, record.time_s)
    return found


@dataclass
class Blocklist:
    """Folded from the stream; entries of a site come in order."""

    entries: dict[str, SiteBlock] = field(default_factory=dict)
    """By site; their times are the server's."""

    def apply(self, entry: SiteBlock, stored_at: float) -> None:
        """`stored_at`: unix seconds by the server's clock."""
        length_s = max(0.0, entry.until - entry.at)
        self.entries[entry.site] = msgspec.structs.replace(entry, at=stored_at, until=stored_at + length_s)

    def blocked(self, now_s: float) -> Mapping[str, SiteBlock]:
        """Every site that is left out at a time (unix seconds, by the server's clock)."""
        return {site: entry for site, entry in self.entries.items() if entry.until > max(now_s, entry.at)}
