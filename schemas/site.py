"""What counts as one site: in blocks, limits, logins, figures."""

import re
from urllib.parse import urlsplit

_PLAIN = re.compile(r"(?s:https?://|(?!.*://))([A-Za-z0-9.-]+)(?::([0-9]{1,4}))?(?=[/?#]|$)")
_USUAL_PORTS = (None, 80, 443)


def site_of(website: str) -> str:
    """The host without `www.` of an address, in the DNS's letters, with its port unless that is 80 or 443; of a suite's page
    `suite:page`, the suite. Never raises.

    Example: `https://www.example.org/a` and `http://example.org` are one site, `example.org:8443` is another.
    """
    website = website.strip()
    head, colon, rest = website.partition(":")
    if colon and rest[:1].isalpha() and head.replace("-", "_").isidentifier():
        return head.lower()
    host, port = _host_and_port(website)
    host = host.rstrip(".")
    bare = host.removeprefix("www.")
    site = bare if "." in bare else host
    if port in _USUAL_PORTS or not site:
        return site
    return f"[{site}]:{port}" if ":" in site else f"{site}:{port}"


def _host_and_port(website: str) -> tuple[str, int | None]:
    """In small letters; of what is no address, all of it."""
    if (plain := _PLAIN.match(website)) is not None:
        # As nearly all addresses are: the standard library's reader takes ten times as long.
        return plain[1].lower(), int(plain[2]) if plain[2] else None
    try:
        parts = urlsplit(website if "://" in website else f"//{website}")
    except ValueError:
        return website.lower(), None
    if not parts.hostname:
        return _ascii(website.lower()), None
    try:
        port = parts.port
    except ValueError:
        port = None
    return _ascii(parts.hostname.lower()), port


def _ascii(host: str) -> str:
    """A name of other letters as the DNS writes it; what the DNS would not take stays as it is."""
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host
