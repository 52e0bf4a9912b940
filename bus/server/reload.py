"""Tells a running server of a folder that the permissions of its runs have changed: what it serves goes on meanwhile.

The server reads its configuration again when its system account asks it to, and answers what was wrong with it.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from bus.access import Access
from bus.jetstream.link import Link, open_link
from bus.jetstream.retrying import RetryLimits, retried
from bus.server.accounts import access_of
from bus.server.embedded import address_of, served_runs
from bus.server.keys import KeyRing, write_private
from bus.server.text import with_accounts
from schemas.bus_config import BusConfig
from schemas.errors import BusUnavailable

_ANSWERED = RetryLimits(attempt_s=10.0, total_s=30.0)


class _Failure(msgspec.Struct, frozen=True):
    code: int = 0
    description: str = ""


class _Server(msgspec.Struct, frozen=True):
    id: str


class _Answer(msgspec.Struct, frozen=True):
    server: _Server
    error: _Failure | None = None


async def reload_permissions(folder: Path, runs: Sequence[BusConfig]) -> None:
    """The accounts of the running server of this folder become those of `runs`; a run that it does not serve gets none.

    Clients stay connected. Safe to repeat, also after a kill half-way.

    Raises:
        BusUnavailable: the server does not answer, or refuses its new configuration.
    """
    keys, config = KeyRing(folder / "keys"), folder / "nats.conf"
    served = [access_of(run, keys) for run in runs if run.run in served_runs(folder)]
    write_private(config, with_accounts(config.read_text(), served, keys.system_public_key()).encode())
    address = replace(address_of(folder, role=Access.ADMIN), nkey_seed=keys.system_seed(), inbox_prefix="_INBOX_system")
    async with open_link(address, "reload") as link:
        server = (await _asked(link, "$SYS.REQ.SERVER.PING")).server
        error = (await _asked(link, f"$SYS.REQ.SERVER.{server.id}.RELOAD")).error
    if error is not None:
        raise BusUnavailable(f"the server of {folder} refuses its new permissions: {error.description}")


async def _asked(link: Link, subject: str) -> _Answer:
    async def attempt(wait_s: float) -> _Answer:
        reply = await link.request(subject, b"", timeout_s=wait_s)
        return msgspec.json.decode(reply.data, type=_Answer)

    return await retried(link, f"asking {subject}", _ANSWERED, attempt)
