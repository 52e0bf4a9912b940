"""A slow disk: strace delays every write and sync of a running process. Needs strace, and leave to trace the process.

What a server appends to its files it writes with the same system call as what it sends to its clients: both are slowed down.
"""

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio

from bus.child_process import start_process

_DELAY_US = 2_000
_DELAYED = "write,pwrite64,fsync,fdatasync"
_STOPPING_S = 2.0


def why_not() -> str | None:
    """Why disks cannot be slowed down here; None when they can, as far as one can tell by tracing a process of our own."""
    strace = shutil.which("strace")
    if sys.platform != "linux" or strace is None:
        return "strace is not installed"
    tried = subprocess.run([strace, "-qq", "-e", "trace=none", "true"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"strace may not trace here: {tried.stderr.strip()[-200:]}"


@asynccontextmanager
async def slow_disk(pid: int) -> AsyncIterator[None]:
    """Delays each of the process's writes to files while the context is open."""
    delay = f"inject={_DELAYED}:delay_enter={_DELAY_US}"
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(pid), "-e", f"trace={_DELAYED}", "-e", delay]
    process = await start_process(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            with suppress(ProcessLookupError):
                process.terminate()  # it lets go of the process and ends
            with anyio.move_on_after(_STOPPING_S):
                await process.wait()
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
            await process.aclose()
