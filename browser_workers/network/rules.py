"""May a page of an episode connect to this host at this address? Decided by value; nothing is looked up here.

In this order: `denied_hosts`, the browser's own DevTools, private addresses, `allowed_hosts`. An empty sentence is a yes.
Invariant: an address that is not public is reached where a person wrote it, or wrote the name that leads there; that a name
leads there is nobody's word.
"""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from urllib.parse import urlsplit

from browser_workers.network.addresses import Address, Kind, assumed, is_loopback, kind, literal, plain
from schemas.browser_config import BrowserConfig

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_WEB_PORTS = (80, 443)
"""A site on one of them is on the other too."""
_BY_NAME = (Kind.LOOPBACK, Kind.PRIVATE)
"""Where a name may lead that a person wrote; nobody's site is at the others."""
_PRIVATE_SUFFIXES = ("local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa")
"""What networks of their own call their hosts; none is a public domain (RFC 6762, appendix G; RFC 8375)."""


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
    private_names: tuple[str, ...] = ()
    """Names that may lead to private addresses and loopback."""
    private_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Addresses that are open like public ones."""
    own: Endpoint | None = None
    """The task's own site, as its file has it."""
    devtools_ports: frozenset[int] = frozenset()
    """Ports of loopback through which browsers themselves are driven."""

    def refusal(self, host: str, port: int, address: Address | None = None) -> str:
        """Why no page may connect to `host`, found at `address` (None: not looked up); empty when it may."""
        if any(_covers(entry, host, address) for entry in self.denied_hosts):
            return f"{host} is refused by browser_config.denied_hosts"
        if address is not None and (reason := self._private(host, port, address)):
            return reason
        if self.allowed_hosts and not self._allowed(host):
            return f"{host} is not among browser_config.allowed_hosts"
        return ""

    def is_looked_up_here(self, host: str) -> bool:
        """An address, a name of this machine, or a name that may lead to private addresses: nobody else knows better."""
        return bool(assumed(host)) or any(_covers(name, host, None) for name in self.private_names)

    def refusal_of_private_name(self, host: str) -> str:
        """Why nobody else is asked to look `host` up, who would do it in a network of theirs; empty: it is a public name."""
        if "." in host and not any(_covers(suffix, host, None) for suffix in _PRIVATE_SUFFIXES):
            return ""
        return f"{host} is a name of private networks: pages reach it only where browser_config.private_hosts has it"

    def _private(self, host: str, port: int, address: Address) -> str:
        found = kind(address)
        if found in (Kind.LOOPBACK, Kind.UNSPECIFIED) and port in self.devtools_ports:
            return f"{host}:{port} is the browser's own DevTools (browser_config.cdp_url, cdp_urls), which no page may reach"
        if not found or self._was_written(host, port, address, found):
            return ""
        is_address = literal(host) is not None
        where = f"{host}:{port}" if is_address else f"{host}:{port} is at {address}, which"
        missing = host if found in _BY_NAME and not is_address else plain(address)
        return f"{where} is {found}: pages reach it only where browser_config.private_hosts has {missing}"

    def _was_written(self, host: str, port: int, address: Address, found: Kind) -> bool:
        """Whether a person opened it."""
        if self._is_own(host, port) and address in assumed(host):
            return True
        if any(plain(address) in network for network in self.private_networks):
            return True
        return found in _BY_NAME and any(_covers(name, host, None) for name in self.private_names)

    def _is_own(self, host: str, port: int) -> bool:
        if self.own is None or host != self.own.host:
            return False
        return port == self.own.port or (port in _WEB_PORTS and self.own.port in _WEB_PORTS)

    def _allowed(self, host: str) -> bool:
        own = () if self.own is None else (self.own.host.removeprefix("www."),)
        return any(_covers(entry, host, None) for entry in (*self.allowed_hosts, *own))


def rules_for(config: BrowserConfig, own_url: str) -> Rules:
    """Those of an episode whose own site is at `own_url`; empty: it has none on the network."""
    devtools = filter(None, map(endpoint, config.devtools))
    written = tuple((host, _network(host)) for host in config.private_hosts)
    return Rules(
        allowed_hosts=tuple(map(normal_host, config.allowed_hosts)),
        denied_hosts=tuple(map(normal_host, config.denied_hosts)),
        private_names=tuple(normal_host(host) for host, network in written if network is None),
        private_networks=tuple(network for _, network in written if network is not None),
        own=endpoint(own_url),
        devtools_ports=frozenset(each.port for each in devtools if is_loopback(each.host)),
    )


def _network(host: str) -> IPv4Network | IPv6Network | None:
    """None: it is a name."""
    if (address := literal(normal_host(host))) is not None:
        return ip_network(plain(address))
    return ip_network(host) if "/" in host else None


def _covers(entry: str, host: str, address: Address | None) -> bool:
    """A name covers its subdomains; an address covers every name that leads to it."""
    if (fixed := literal(entry)) is not None:
        return plain(fixed) in {plain(each) for each in (literal(host), address) if each is not None}
    return host == entry or host.endswith(f".{entry}")
