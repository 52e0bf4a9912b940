"""How a server that does not come up is told from one that must not be started again."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from urllib.request import urlopen

import anyio
import anyio.to_thread
import pytest
from structlog.testing import capture_logs

from bus import output_file
from bus.address import ServerAddress
from bus.jetstream import connect
from bus.server import embedded, patience
from bus.server import process as server_process_module
from bus.server.embedded import address_of, nats_server, server_process
from bus.server.ports import held_port, held_ports
from bus.server.process import start, stop, wait_ready
from bus.server_binary import find_binary
from ops.run.streams import create_streams
from schemas.errors import BusUnavailable, ConfigurationError
from tests.contract.backends import CONFIG, SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.polling import until

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


@pytest.fixture
def port() -> Iterator[int]:
    with held_port() as port:
        yield port


async def test_a_server_that_is_killed_while_it_starts_may_be_started_again(tmp_path: Path, port: int) -> None:
    config = tmp_path / "nats.conf"
    config.write_text(f"listen: 127.0.0.1:{port}\n")  # no JetStream: it is never ready
    process = await start(await find_binary(), config, tmp_path / "nats.log")
    try:
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(BusUnavailable, match="could not be started"):
            await wait_ready(process, ServerAddress(f"nats://127.0.0.1:{port}"), tmp_path / "nats.log", tmp_path / "none")
    finally:
        await stop(process)


async def test_a_server_that_gives_up_by_itself_needs_a_person(tmp_path: Path, port: int) -> None:
    config = tmp_path / "nats.conf"
    config.write_text("no_such_option: 1\n")
    process = await start(await find_binary(), config, tmp_path / "nats.log")
    try:
        with pytest.raises(ConfigurationError, match="could not be started"):
            await wait_ready(process, ServerAddress(f"nats://127.0.0.1:{port}"), tmp_path / "nats.log", tmp_path / "none")
    finally:
        await stop(process)


def large_store(folder: Path) -> Path:
    """It takes no room on the disk, and a server would read it for hours."""
    store = folder / "store"
    store.mkdir()
    (store / "1.blk").touch()
    os.truncate(store / "1.blk", 1_000_000_000_000)
    return store


async def test_a_server_that_reads_a_large_store_is_waited_for_and_that_is_said_once(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "START_S", 0.01)
    monkeypatch.setattr(patience, "_MOMENT_S", 1.5)
    work = count(1)
    monkeypatch.setattr(server_process_module, "_worked_s", lambda _: float(next(work)))
    config, slow, log_file = tmp_path / "nats.conf", tmp_path / "slow-nats-server", tmp_path / "nats.log"
    read = tmp_path / "read"
    config.write_text(f"listen: 127.0.0.1:{port}\njetstream {{ store_dir: {tmp_path / 'own'} }}\n")
    binary = await find_binary()
    slow.write_text(f'#!/bin/sh\nwhile [ ! -e {read} ]; do sleep 0.1; done\nexec {binary.path} "$@"\n')
    slow.chmod(0o755)

    async def is_told() -> bool:
        return any(log["event"] == "server_reads_its_store" for log in logs)

    async def read_when_told() -> None:
        await until(is_told)
        read.touch()

    process = await start(replace(binary, path=slow), config, log_file)
    try:
        with capture_logs() as logs, anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                group.start_soon(read_when_told)
                await wait_ready(process, ServerAddress(f"nats://127.0.0.1:{port}"), log_file, large_store(tmp_path))
    finally:
        await stop(process)
    assert [log["size"] for log in logs if log["event"] == "server_reads_its_store"] == ["1000.0 GB"]


async def test_one_that_does_nothing_any_more_is_given_up_however_large_its_store_is(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "START_S", 1.0)
    config, log_file = tmp_path / "nats.conf", tmp_path / "nats.log"
    config.write_text(f"listen: 127.0.0.1:{port}\n")
    process = await start(await find_binary(), config, log_file)
    try:
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(BusUnavailable, match="could not be started"), anyio.fail_after(HANGS_S):
            await wait_ready(process, ServerAddress(f"nats://127.0.0.1:{port}"), log_file, large_store(tmp_path))
    finally:
        process.kill()
        await stop(process)


@pytest.mark.parametrize("late", ["port", "monitor"])
async def test_ports_that_another_program_was_quicker_to_take_are_drawn_again(
    late: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, held_ports(6) as free:
        taken = other.getsockname()[1]
        first = (taken, *free[:2]) if late == "port" else (free[0], taken, free[1])
        draws = iter([first, free[2:5], free[3:6]])
        monkeypatch.setattr(embedded, "free_ports", lambda _: next(draws))
        async with server_process(tmp_path) as server, connect(address_of(tmp_path), SUBJECTS, CONFIG, name="client"):
            assert server.address.url != f"nats://127.0.0.1:{taken}"
            assert (await anyio.to_thread.run_sync(urlopen, f"{server.monitor_url}/healthz")).status == 200


async def test_a_server_whose_port_was_taken_while_it_was_away_moves_and_is_followed(tmp_path: Path, port: int) -> None:
    async with server_process(tmp_path, port=port) as server:
        before = server.address
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        async with AsyncExitStack() as stack:
            served = await stack.enter_async_context(server_process(tmp_path))
            assert served.address == before, "as long as nobody else has it"
            bus = await stack.enter_async_context(connect(before, SUBJECTS, CONFIG, name="client"))
            await create_streams(before, CONFIG)
            os.kill(served.pid, signal.SIGKILL)
            await served.wait_dead()
            other.bind(("127.0.0.1", port))
            other.listen()
            moved = await stack.enter_async_context(server_process(tmp_path))
            assert moved.address.url != before.url
            with anyio.fail_after(HANGS_S):
                while True:
                    with suppress(BusUnavailable):
                        assert await bus.last_seq(SUBJECTS.checkpoints) == 0
                        break


async def test_the_log_of_a_server_that_runs_on_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_file = tmp_path / "nats.log"
    monkeypatch.setattr(output_file, "_LOOK_S", 0.01)

    async def has_said_all() -> bool:
        return "Server is ready" in log_file.read_text()

    async def is_empty() -> bool:
        return log_file.stat().st_size == 0

    async with nats_server(tmp_path):
        await until(has_said_all)
        said = log_file.read_text()
        monkeypatch.setattr(output_file, "_LIMIT_BYTES", len(said) - 1)
        await until(is_empty)
    assert "Server Exiting" in log_file.read_text()
    assert log_file.with_name("nats.log.1").read_text() == said[1:]


async def test_a_port_that_was_asked_for_is_not_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it was free when the server began to start: whoever wrote it down looks for the run there."""
    monkeypatch.setattr(embedded, "is_free", lambda _: True)
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(ConfigurationError, match="address already in use"):
        async with server_process(tmp_path, port=other.getsockname()[1]):
            pass
