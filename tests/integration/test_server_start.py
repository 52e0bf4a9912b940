"""How a server that does not come up is told from one that must not be started again."""

import os
import signal
from pathlib import Path

import pytest

from bus.address import ServerAddress
from bus.server.ports import free_port
from bus.server.process import start, stop, wait_ready
from bus.server_binary import find_binary
from schemas.errors import BusUnavailable, ConfigurationError

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


async def test_a_server_that_is_killed_while_it_starts_may_be_started_again(tmp_path: Path) -> None:
    port = free_port()
    config = tmp_path / "nats.conf"
    config.write_text(f"listen: 127.0.0.1:{port}\n")  # no JetStream: it is never ready
    process = await start(await find_binary(), config, tmp_path / "nats.log")
    try:
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(BusUnavailable, match="could not be started"):
            await wait_ready(process, ServerAddress(f"nats://127.0.0.1:{port}"), tmp_path / "nats.log")
    finally:
        await stop(process)


async def test_a_server_that_gives_up_by_itself_needs_a_person(tmp_path: Path) -> None:
    port = free_port()
    config = tmp_path / "nats.conf"
    config.write_text("no_such_option: 1\n")
    process = await start(await find_binary(), config, tmp_path / "nats.log")
    try:
        with pytest.raises(ConfigurationError, match="could not be started"):
            await wait_ready(process, ServerAddress(f"nats://127.0.0.1:{port}"), tmp_path / "nats.log")
    finally:
        await stop(process)
