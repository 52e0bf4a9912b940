"""How a server that does not come up is told from one that must not be started again."""

import os
import signal
import socket
from pathlib import Path
from urllib.request import urlopen

import anyio.to_thread
import pytest

from bus.address import ServerAddress
from bus.jetstream import connect
from bus.server import embedded
from bus.server.embedded import address_of, server_process
from bus.server.ports import free_port, free_ports
from bus.server.process import start, stop, wait_ready
from bus.server_binary import find_binary
from schemas.errors import BusUnavailable, ConfigurationError
from tests.contract.backends import CONFIG, SUBJECTS

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


@pytest.mark.parametrize("late", ["port", "monitor"])
async def test_ports_that_another_program_was_quicker_to_take_are_drawn_again(
    late: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", free_port()))
        other.listen()
        taken, free = other.getsockname()[1], free_ports(6)
        first = (taken, *free[:2]) if late == "port" else (free[0], taken, free[1])
        draws = iter([first, free[2:5], free[3:6]])
        monkeypatch.setattr(embedded, "free_ports", lambda _: next(draws))
        async with server_process(tmp_path) as server, connect(address_of(tmp_path), SUBJECTS, CONFIG, name="client"):
            assert server.address.url != f"nats://127.0.0.1:{taken}"
            assert (await anyio.to_thread.run_sync(urlopen, f"{server.monitor_url}/healthz")).status == 200


async def test_a_port_that_was_asked_for_is_not_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it was free when the server began to start: whoever wrote it down looks for the run there."""
    monkeypatch.setattr(embedded, "is_free", lambda _: True)
    with socket.socket() as other:
        other.bind(("127.0.0.1", free_port()))
        other.listen()
        with pytest.raises(ConfigurationError, match="address already in use"):
            async with server_process(tmp_path, port=other.getsockname()[1]):
                pass
