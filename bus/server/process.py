"""A nats-server as a child process: started, found ready, stopped in order."""

import subprocess
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread
import psutil
import structlog

from bus.address import ServerAddress
from bus.child_process import start_process
from bus.jetstream.bus import require_jetstream
from bus.jetstream.link import open_link
from bus.output_file import last_lines, open_output
from bus.patience import move_on_after_running
from bus.server.patience import LOOK_S, Patience, size_of, tell_of_reading
from bus.server_binary import ServerBinary
from schemas.errors import BusUnavailable, ConfigurationError

_log = structlog.get_logger()
_STOPPING_S = 30.0
"""It writes to disk what it has in memory."""
_PORT_TAKEN = "address already in use"


class PortTaken(ConfigurationError):
    """Another program listens where the server was to."""


async def start(binary: ServerBinary, config: Path, log_file: Path) -> anyio.abc.Process:
    with open_output(log_file) as output:
        # A session of its own: an interrupt at the terminal reaches the workers first, and they close in order.
        return await start_process(
            [str(binary.path), "-c", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


async def wait_ready(process: anyio.abc.Process, address: ServerAddress, log_file: Path, store: Path) -> None:
    """Returns when JetStream answers this address, for which the server reads what it has in `store`.

    Raises:
        PortTaken: another program was quicker to listen on one of its ports.
        ConfigurationError: the server itself gave up: its configuration or its store is wrong.
        BusUnavailable: it was killed, or has had all the time that it may need: the next start may succeed.
    """

    async def watch(scope: anyio.CancelScope) -> None:
        await process.wait()
        scope.cancel()

    ready, num_bytes = False, await anyio.to_thread.run_sync(size_of, store)
    async with anyio.create_task_group() as group:
        group.start_soon(watch, group.cancel_scope)
        group.start_soon(_lose_patience, Patience(num_bytes), process.pid, group.cancel_scope)
        group.start_soon(tell_of_reading, num_bytes)
        while not ready:
            # `open_link` itself waits for the port to open, `require_jetstream` for the store to be read.
            with suppress(BusUnavailable):
                async with open_link(address, "start", starting=True) as link:
                    await require_jetstream(link, address)
                    ready = True
        group.cancel_scope.cancel()
    if not ready:
        words = last_words(log_file)
        reason = f"nats-server could not be started: {words}; see {log_file}"
        if process.returncode is None or process.returncode < 0:
            raise BusUnavailable(reason)
        raise PortTaken(reason) if _PORT_TAKEN in words else ConfigurationError(reason)


async def _lose_patience(patience: Patience, pid: int, scope: anyio.CancelScope) -> None:
    before = anyio.current_time()
    while not patience.is_over:
        await anyio.sleep(LOOK_S)
        now = anyio.current_time()
        patience.spend(now - before, worked_s=_worked_s(pid))
        before = now
    scope.cancel()


def _worked_s(pid: int) -> float:
    """Processor time that a process has had."""
    with suppress(psutil.Error):
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)
    return 0.0


async def stop(process: anyio.abc.Process) -> None:
    with anyio.CancelScope(shield=True):
        with suppress(ProcessLookupError):
            process.terminate()
        async with move_on_after_running(_STOPPING_S):
            await process.wait()
        if process.returncode is None:
            _log.warning("server_killed", pid=process.pid)
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        await process.aclose()


def last_words(log_file: Path) -> str:
    """The latest fatal or error line of the log's end, else its last line."""
    lines = last_lines(log_file)
    serious = [line for line in lines if "[FTL]" in line or "[ERR]" in line]
    return (serious or lines or ["it said nothing"])[-1]
