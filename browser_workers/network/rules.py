"""May a page of an episode connect to this host at this address? Decided by value; nothing is looked up here.

In this order: `denied_hosts`, the browser's own DevTools, private addresses, `allowed_hosts`. An empty sentence is a yes.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from browser_workers.network.addresses import Address, is_loopback, kind, literal
from schemas.browser_config import BrowserConfig

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_WEB_PORTS = (80, 443)
"""A site on one of them is on the other too."""


def normal_host(host: str) -> str:
    """One spelling for each host: lower case, ASCII, no final dot, addresses in their usual form."""
    host = host.strip("[]").rstrip(".").lower()
    if (address := literal(host)) is not None:
        return str(address)
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host


@dataclass(frozen=True, slots=True)
class Endpoint:
    host: str
    """As `normal_host` spells it."""
    port: int


def endpoint(url: str) -> Endpoint | None:
    """Where a page's address leads; None when that is no host."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return None
    return Endpoint(normal_host(parts.hostname), port) if parts.hostname and port else None


@dataclass(frozen=True, slots=True)
class Rules:
    """Of one episode."""

    allowed_hosts: tuple[str, ...] = ()
    denied_hosts: tuple[str, ...] = ()
    allow_private_hosts: bool = False
    own: Endpoint | None = None
    """The task's own site."""
    own_addresses: frozenset[Address] | None = None
    """Where that site was when it was first looked up; only there may it be private. None: it was not yet."""
    devtools_port: int = 0
    """Port of loopback through which the browser itself is driven; 0: none."""

    def refusal(self, host: str, port: int, address: Address | None = None) -> str:
        """Why no page may connect to `host`, found at `address` (None: not looked up); empty when it may."""
        if any(_covers(entry, host, address) for entry in self.denied_hosts):
            return f"{host} is refused by browser_config.denied_hosts"
        if address is not None and (reason := self._private(host, port, address)):
            return reason
        if self.allowed_hosts and not self._allowed(host):
            return f"{host} is not among browser_config.allowed_hosts"
        return ""

    def is_own(self, host: str, port: int) -> bool:
        if self.own is None or host != self.own.host:
            return False
        return port == self.own.port or (port in _WEB_PORTS and self.own.port in _WEB_PORTS)

    def _private(self, host: str, port: int, address: Address) -> str:
        found = kind(address)
        if found and address.is_loopback and port == self.devtools_port:
            return f"{host}:{port} is the browser's own DevTools (browser_config.cdp_url), which no page may reach"
        own = self.is_own(host, port) and (self.own_addresses is None or address in self.own_addresses)
        if not found or own or self.allow_private_hosts:
            return ""
        where = f"{host}:{port}" if host == str(address) else f"{host}:{port} is at {address}, which"
        return f"{where} is {found}: pages reach those only with browser_config.allow_private_hosts"

    def _allowed(self, host: str) -> bool:
        own = () if self.own is None else (self.own.host.removeprefix("www."),)
        return any(_covers(entry, host, None) for entry in (*self.allowed_hosts, *own))


def rules_for(config: BrowserConfig, own_url: str) -> Rules:
    """Those of an episode whose own site is at `own_url`; empty: it has none on the network."""
    devtools = endpoint(config.cdp_url)
    return Rules(
        allowed_hosts=tuple(map(normal_host, config.allowed_hosts)),
        denied_hosts=tuple(map(normal_host, config.denied_hosts)),
        allow_private_hosts=config.allow_private_hosts,
        own=endpoint(own_url),
        devtools_port=devtools.port if devtools is not None and is_loopback(devtools.host) else 0,
    )


def _covers(entry: str, host: str, address: Address | None) -> bool:
    """A name covers its subdomains; an address covers every name that leads to it."""
    if (fixed := literal(entry)) is not None:
        return fixed in (literal(host), address)
    return host == entry or host.endswith(f".{entry}")
