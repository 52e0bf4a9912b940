"""How often the browsers of a run may ask a site for a page."""

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.requirement import require
from schemas.site import site_of

EVERY_OTHER = "default"
"""In place of a site: every one that is not named."""
_MOST = 10_000


@dataclass(frozen=True, kw_only=True)
class SiteLimit:
    """By one egress, and all workers of the run together."""

    per_minute: int = 0
    """Actions in any minute that load a document of the site, or begin on it; 0: no limit."""
    in_flight: int = 0
    """Such actions under way at once; 0: no limit."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            require(0 <= value <= _MOST, f"browser_config.site_limits: {name} is {value}: write a number from 0 to {_MOST}")

    @property
    def limits(self) -> bool:
        return bool(self.per_minute or self.in_flight)


def require_sites(limits: Mapping[str, SiteLimit]) -> None:
    """Names under which limits are looked up. Raises `ConfigurationError`."""
    for name in limits:
        site = _domain(site_of(name))
        require(name in (site, EVERY_OTHER), f"browser_config.site_limits names {name!r}: write {site}, which is its site")


def limit_of(site: str, limits: Mapping[str, SiteLimit]) -> SiteLimit:
    """Of a site: its own, that of the nearest domain above it that is named, or the one of every other.

    Example: `shop.example.org` has the limit of `example.org` where it has none itself.
    """
    domain = _domain(site)
    while domain:
        if domain in limits:
            return limits[domain]
        domain = domain.partition(".")[2]
    return limits.get(EVERY_OTHER, SiteLimit())


def _domain(site: str) -> str:
    """Without its port."""
    return site.partition(":")[0] if site.count(":") == 1 else site
