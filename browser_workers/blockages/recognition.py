"""Says whether a page is a block, from what it shows. Pure."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from browser_workers.blockages.facts import PageFacts
from browser_workers.blockages.signs import SIGNS, Sign
from schemas.messages import Blockage
from schemas.site import site_of

_LONGEST_S = 30 * 86_400.0
"""That a site may ask anybody to stay away for."""


def recognised(facts: PageFacts) -> Sign | None:
    """The sign that the page is a block; None: it lets its visitor in."""
    return next((sign for sign in SIGNS if sign.holds(facts)), None)


def blockage_of(facts: PageFacts, sign: Sign, *, begun_on: str, egress: str, now_s: float) -> Blockage:
    """`begun_on`: the site of the episode's first page; `now_s`: unix seconds."""
    site = site_of(facts.url)
    return Blockage(
        site=site,
        elsewhere=not is_same_house(site, begun_on),
        sign=sign.says,
        provider=sign.provider,
        status=facts.status,
        retry_after_s=retry_after_s(facts.headers.get("retry-after", ""), now_s),
        egress=egress,
    )


def sentence(blockage: Blockage) -> str:
    """For people and policies, as in `example.org let nobody in: cloudflare, its check of visitors is shown (HTTP 403)`."""
    who = f"{blockage.provider}, " if blockage.provider != "site" else ""
    later = f", to be asked again after {blockage.retry_after_s:.0f} s" if blockage.retry_after_s else ""
    status = f" (HTTP {blockage.status})" if blockage.status else ""
    return f"{blockage.site} let nobody in: {who}{blockage.sign}{status}{later}"


def retry_after_s(header: str, now_s: float) -> float:
    """Seconds, of a number or a date (RFC 9110, 10.2.3); 0 for anything else, and for what is over."""
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), _LONGEST_S)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max(0.0, (moment - datetime.fromtimestamp(now_s, UTC)).total_seconds()), _LONGEST_S)


def is_same_house(site: str, other: str) -> bool:
    """Whether two sites are one, or one is a subdomain of the other: `accounts.example.org` guards `example.org`."""
    return site == other or site.endswith(f".{other}") or other.endswith(f".{site}")
