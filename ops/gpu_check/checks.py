"""The parts of a check, one after the other, each with a deadline; what one could not do is told, and the next begins."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread

from bus.child_process import start_process
from ops.gpu_check.results import forget_scratch
from ops.processes.role_process import millrace_environment

_TAIL = 2000


@dataclass(frozen=True)
class Part:
    """A process of its own."""

    name: str
    module: str
    arguments: tuple[str, ...]
    seconds: float
    """Then it is ended."""


@dataclass(frozen=True)
class Failure:
    part: str
    reason: str


def parts(model: Path, folder: Path, *, num_gpus: int, minutes: float, only: tuple[str, ...]) -> Iterator[Part]:
    """Those that can be had here, of `only` where it names any."""
    common = (str(model), str(folder))
    planned = [Part("serving", "ops.gpu_check.serving", (*common, "1"), 900.0)]
    if num_gpus > 1:
        planned.append(Part("serving in parts", "ops.gpu_check.serving", (*common, str(_power(num_gpus))), 900.0))
    planned.append(Part("training", "ops.gpu_check.training", common, 900.0))
    device = "gpu" if num_gpus else "cpu"
    planned.append(Part("learning", "ops.gpu_check.learning", (*common, str(60 * minutes), device), 60 * minutes + 900))
    yield from (part for part in planned if not only or part.name in only)


async def run(part: Part, folder: Path) -> Failure | None:
    """Its output stands in `<name>.log`; nothing of it is left afterwards, however it ends."""
    log = folder / f"{part.name.replace(' ', '-')}.log"
    command = (sys.executable, "-m", part.module, *part.arguments)
    with log.open("wb") as output:
        process = await start_process(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=millrace_environment(),
            start_new_session=True,
        )
        try:
            with anyio.move_on_after(part.seconds) as patience:
                await process.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with anyio.CancelScope(shield=True):
                await process.aclose()
                await to_thread.run_sync(forget_scratch, folder)
    if patience.cancelled_caught:
        return Failure(part.name, f"it did not end within {part.seconds:.0f} s; {log} has its output")
    if process.returncode:
        return Failure(part.name, f"{_last_line(log)}; {log} has its output")
    return None


def _power(number: int) -> int:
    """The largest power of two up to it: heads are divided by such numbers."""
    return 1 << (number.bit_length() - 1)


def _last_line(log: Path) -> str:
    lines = log.read_bytes()[-_TAIL:].decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
