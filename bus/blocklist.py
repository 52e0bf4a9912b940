"""Sites that are left out of training for a while, because they blocked the agent: kept on the bus, for the run's feeders.

The newest word on a site counts, so whoever blocks it later, or lifts the block, needs to know nothing of the ones before.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bus.ports import Bus
from bus.subjects import Subjects
from schemas.ids import EpisodeId
from schemas.messages import SiteBlock


def site_of(website: str) -> str:
    """The host without `www.` of an address; of a suite's page `suite:page`, the suite.

    Example: `https://www.example.org:8443/a` and `http://example.org` are one site.
    """
    head, _, rest = website.partition(":")
    if rest and not rest.startswith("//") and "." not in head and "/" not in head:
        return head.lower()
    host = urlsplit(website if "://" in website else f"//{website}").hostname or website
    return host.lower().removeprefix("www.")


async def block(
    bus: Bus, subjects: Subjects, site: str, *, hours: float, reason: str, episode: EpisodeId | None = None
) -> SiteBlock:
    """Leaves a site out from now on; 0 hours: not any more."""
    now = time.time()
    entry = SiteBlock(site=site, until=now + hours * 3600.0, reason=reason, episode=episode or EpisodeId(""), at=now)
    await bus.append(subjects.blocklist, subjects.blocked(site), entry)
    return entry


async def read_blocklist(bus: Bus, subjects: Subjects) -> "Blocklist":
    """The list as it is now."""
    found = Blocklist()
    for record in await bus.history(subjects.blocklist, subjects.everything("blocked")):
        if isinstance(record.message, SiteBlock):
            found.apply(record.message)
    return found


@dataclass
class Blocklist:
    """Folded from the stream; entries of a site come in order."""

    entries: dict[str, SiteBlock] = field(default_factory=dict)

    def apply(self, entry: SiteBlock) -> None:
        self.entries[entry.site] = entry

    def blocked_until(self, website: str, now_s: float) -> float | None:
        """Unix seconds until which a task's site is left out; None: it is not."""
        entry = self.entries.get(site_of(website))
        return entry.until if entry is not None and entry.until > now_s else None

    def blocked(self, now_s: float) -> Mapping[str, SiteBlock]:
        """Every site that is left out at a time (unix seconds)."""
        return {site: entry for site, entry in self.entries.items() if entry.until > now_s}
