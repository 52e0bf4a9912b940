"""NATS' own tools with a run's keys: what `nats` and nats-surveyor ask is answered, on a real server with our permissions."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from bus.access import Access
from bus.jetstream import connect
from bus.presence import Status
from bus.server import address_of
from bus.server.keys import KeyRing
from ops.processes.service import micro_service
from schemas.bus_config import BusConfig
from schemas.messages import Role
from tests.builders import RUN, WORKER
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.polling import until
from tests.support.runs.running_run import running_run

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


@asynccontextmanager
async def tool(server: Path, seed: str, *, inbox_prefix: str) -> AsyncIterator[tuple[Client, list[str]]]:
    """A client as the tools are, and what the server refused to it."""
    refusals: list[str] = []

    async def note(error: Exception) -> None:
        refusals.append(str(error))

    client = await nats.connect(
        address_of(server).url,
        nkeys_seed_str=seed,
        inbox_prefix=inbox_prefix,
        error_cb=note,
        allow_reconnect=False,
        connect_timeout=int(HANGS_S),
    )
    try:
        yield client, refusals
    finally:
        await client.close()


async def asked(client: Client, subject: str) -> dict[str, Any]:
    answer = await client.request(subject, b"", timeout=HANGS_S)
    found: dict[str, Any] = json.loads(answer.data)
    assert "error" not in found, found
    return found


async def test_the_monitors_key_lists_services_streams_and_consumers(tmp_path: Path) -> None:
    server = tmp_path / "server"
    async with (
        running_run(tmp_path),
        connect(address_of(server, role=Access.BROWSER), SUBJECTS, BusConfig(run=RUN), name="worker") as bus,
        bus.serve(micro_service(SUBJECTS, Status(Role.BROWSER, WORKER))),
    ):
        seed = KeyRing(server / "keys").seed(RUN, Access.MONITOR)
        async with tool(server, seed, inbox_prefix="_INBOX_monitor") as (client, refusals):
            for verb in ("PING", "INFO", "STATS"):  # nats micro ls, info, stats
                assert (await asked(client, f"$SRV.{verb}"))["name"] == "millrace-browser"
            names = (await asked(client, "$JS.API.STREAM.NAMES"))["streams"]  # nats stream ls, report
            listed = {stream["config"]["name"] for stream in (await asked(client, "$JS.API.STREAM.LIST"))["streams"]}
            assert "test_EPISODES0" in names
            assert set(names) == listed
            for verb in ("LIST", "NAMES"):  # nats consumer ls, report
                assert len((await asked(client, f"$JS.API.CONSUMER.{verb}.test_TASKS"))["consumers"]) == 2
            assert refusals == []
        async with tool(server, seed, inbox_prefix="_INBOX") as (client, refusals):
            with pytest.raises(nats.errors.TimeoutError):
                await client.request("$SRV.PING", b"", timeout=1.0)

            async def refused() -> bool:
                """Why the prefix is documented."""
                return any("permissions violation for subscription" in each for each in refusals)

            await until(refused)


async def test_surveyor_reads_the_server_with_the_systems_key(tmp_path: Path) -> None:
    async with running_run(tmp_path):
        server = tmp_path / "server"
        async with tool(server, KeyRing(server / "keys").system_seed(), inbox_prefix="_INBOX") as (client, refusals):
            found = await asked(client, "$SYS.REQ.SERVER.PING")
            assert found["server"]["jetstream"] is True
            for what in ("STATSZ", "JSZ", "VARZ", "ACCOUNTZ"):
                assert "server" in await asked(client, f"$SYS.REQ.SERVER.PING.{what}")
            assert refusals == []
