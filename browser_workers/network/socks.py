"""SOCKS 5 as a browser speaks it (RFC 1928), read and written by value: no authentication, CONNECT only."""

import enum
import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

_VERSION = 5
_CONNECT = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_SIZES = {_IPV4: 4, _IPV6: 16}
_HOST = re.compile(rb"[!-~]{1,255}")
MAX_REQUEST = 262
"""Bytes of the longest greeting or request."""
ACCEPTED = bytes((_VERSION, 0))
"""Answers a greeting: no authentication."""


class Answer(enum.IntEnum):
    """What becomes of a request to connect."""

    CONNECTED = 0
    NOT_ALLOWED = 2
    NETWORK_UNREACHABLE = 3
    HOST_UNREACHABLE = 4
    REFUSED = 5
    TOO_LATE = 6


class Malformed(Exception):
    """These bytes are no SOCKS 5 that is spoken here."""


@dataclass(frozen=True, slots=True)
class Target:
    host: str
    port: int


def greeting_size(data: bytes) -> int:
    """Bytes of the greeting at the beginning of `data`; 0: more must come. Raises `Malformed`."""
    if data[:1] != bytes((_VERSION,)):
        raise Malformed("not version 5")
    if len(data) < 2 or len(data) < 2 + data[1]:
        return 0
    if 0 not in data[2 : 2 + data[1]]:
        raise Malformed("authentication is not spoken")
    return 2 + data[1]


def target_of(data: bytes) -> Target | None:
    """Where a request wants to connect; None: more must come. Raises `Malformed`."""
    if len(data) < 5:
        return None
    version, command, _, kind = data[:4]
    if version != _VERSION or command != _CONNECT:
        raise Malformed("not a request to connect")
    begin = 5 if kind == _NAME else 4
    size = data[4] if kind == _NAME else _SIZES.get(kind, 0)
    if not size:
        raise Malformed("no host")
    if len(data) < begin + size + 2:
        return None
    host, port = data[begin : begin + size], int.from_bytes(data[begin + size : begin + size + 2], "big")
    if kind == _NAME:
        if not _HOST.fullmatch(host):
            raise Malformed("no name")
        return Target(host.decode("ascii"), port)
    return Target(str(IPv4Address(host) if kind == _IPV4 else IPv6Address(host)), port)


def answer(code: Answer) -> bytes:
    return bytes((_VERSION, code, 0, _IPV4, 0, 0, 0, 0, 0, 0))
