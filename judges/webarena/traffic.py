"""Reads a record of traffic. Pure."""

import zlib
from typing import Any

import msgspec

from schemas.errors import NoVerdict
from schemas.messages import NetworkRecord

_LARGEST = 200_000_000
"""Bytes, unpacked."""


class _Log(msgspec.Struct):
    entries: list[dict[str, Any]]


class _Har(msgspec.Struct):
    log: _Log


def entries_of(record: NetworkRecord) -> list[dict[str, Any]]:
    """Entries of its HAR. Raises `NoVerdict` for what is none."""
    try:
        unpacking = zlib.decompressobj(wbits=31)
        har = unpacking.decompress(record.har, _LARGEST)
        if unpacking.unconsumed_tail:
            raise NoVerdict(f"the record of its traffic has more than {_LARGEST:,} bytes")
        return msgspec.json.decode(har, type=_Har).log.entries
    except (zlib.error, msgspec.MsgspecError, ValueError) as error:
        raise NoVerdict(f"the record of its traffic cannot be read ({error})") from error
