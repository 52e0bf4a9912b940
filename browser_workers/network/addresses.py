"""Which network addresses belong to nobody's public site, by value.

Invariant: an address that carries an IPv4 address inside (mapped, translated, tunnelled) counts as that one.
"""

import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

_TRANSLATED = IPv6Network("64:ff9b::/96")
"""NAT64: the last 32 bits are an IPv4 address (RFC 6052)."""
_METADATA = frozenset(
    map(ip_address, ("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"))
)
"""Where clouds hand out a machine's credentials. One of them is a public address."""
_LOOPBACK = IPv4Address("127.0.0.1")


def literal(host: str) -> Address | None:
    """The address that `host` is, in any of the forms that browsers take for one; None for a name."""
    text = host.strip("[]")
    with suppress(ValueError):
        return ip_address(text)
    if text[:1].isdigit():
        # 127.1, 0x7f.1 and 2130706433 are addresses too.
        with suppress(OSError):
            return IPv4Address(socket.inet_aton(text))
    return None


def assumed(host: str) -> Address | None:
    """What can be said of `host` without a look-up."""
    if host == "localhost" or host.endswith(".localhost"):
        return _LOOPBACK
    return literal(host)


def is_loopback(host: str) -> bool:
    address = assumed(host)
    return address is not None and address.is_loopback


def kind(address: Address) -> str:
    """What a non-public address is, as in `a loopback address`; empty for a public one."""
    inner = _embedded(address)
    if inner is not None:
        return kind(inner)
    if address in _METADATA:
        return "a cloud's metadata address"
    named = (
        (address.is_unspecified, "the unspecified address"),
        (address.is_loopback, "a loopback address"),
        (address.is_link_local, "a link-local address"),
        (address.is_multicast, "a multicast address"),
        (not address.is_global or address.is_reserved, "a private or reserved address"),
        (isinstance(address, IPv6Address) and address.is_site_local, "a private or reserved address"),
    )
    return next((name for holds, name in named if holds), "")


def _embedded(address: Address) -> IPv4Address | None:
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address.teredo is not None:
        return address.teredo[1]
    return address.sixtofour
