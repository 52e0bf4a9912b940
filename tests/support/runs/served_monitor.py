"""`millrace monitor --web` in a process of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from bus.server.ports import held_port
from ops.processes.role_process import millrace_command, millrace_environment

_READY_S = 60.0


@asynccontextmanager
async def served_monitor(folder: Path) -> AsyncIterator[str]:
    """Its address."""
    with held_port() as port:
        command = millrace_command(["monitor", "--run-dir", str(folder), "--web", "--port", str(port)])
        async with await anyio.open_process(command, env=millrace_environment()) as process:
            try:
                assert process.stdout is not None
                with anyio.fail_after(_READY_S):
                    url = (await process.stdout.receive()).decode().split()[0]
                yield url
            finally:
                process.terminate()
