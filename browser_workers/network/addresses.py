"""Tells private, loopback, link-local and metadata addresses from public ones, by value.

Invariant: an address that carries an IPv4 address inside (mapped, translated, tunnelled) counts as that one.
"""

import enum
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
_PUBLIC_V6 = IPv6Network("2000::/3")
"""All that was ever given to anybody (RFC 4291)."""
_LOOPBACK = (IPv4Address("127.0.0.1"), IPv6Address("::1"))


class Kind(enum.StrEnum):
    """What an address is, in words."""

    PUBLIC = ""
    METADATA = "a cloud's metadata address"
    UNSPECIFIED = "the unspecified address"
    LOOPBACK = "a loopback address"
    LINK_LOCAL = "a link-local address"
    MULTICAST = "a multicast address"
    PRIVATE = "a private or reserved address"


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


def assumed(host: str) -> tuple[Address, ...]:
    """Where `host` is without a look-up: an address, or a name of this machine (RFC 6761)."""
    if host == "localhost" or host.endswith(".localhost"):
        return _LOOPBACK
    address = literal(host)
    return () if address is None else (address,)


def is_loopback(host: str) -> bool:
    return any(address.is_loopback for address in assumed(host))


def plain(address: Address) -> Address:
    """The IPv4 address that one of IPv6 carries, else itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    tunnelled = address.teredo[1] if address.teredo is not None else None
    return address.ipv4_mapped or tunnelled or address.sixtofour or address


def kind(address: Address) -> Kind:
    address = plain(address)
    named = (
        (address in _METADATA, Kind.METADATA),
        (address.is_unspecified, Kind.UNSPECIFIED),
        (address.is_loopback, Kind.LOOPBACK),
        (address.is_link_local, Kind.LINK_LOCAL),
        (address.is_multicast, Kind.MULTICAST),
        (not address.is_global or address.is_reserved, Kind.PRIVATE),
        (isinstance(address, IPv6Address) and address not in _PUBLIC_V6, Kind.PRIVATE),
    )
    return next((name for holds, name in named if holds), Kind.PUBLIC)
