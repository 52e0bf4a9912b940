"""Checks this machine for `millrace doctor`: each check tries the real thing in a short time and says how to get what is
missing."""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import anyio
import psutil

from browser_workers.chromium.process.executable import find_chromium
from bus.child_process import run_process
from bus.server import nats_server
from bus.server_binary import find_binary
from ops.processes.packages import install_command, installed, lacking, pins, quickstart_extras
from schemas.errors import MillraceError
from schemas.judge_config import OpenAIConfig

_GIB = 1024**3
_TRY_S = 60.0
"""For each program that is tried."""
_TOO_LONG = 124


class Health(Enum):
    GOOD = "good"
    NOTE = "note"
    """Works, or is optional; worth knowing."""
    MISSING = "missing"
    """What was asked about cannot run without it."""


@dataclass(frozen=True, kw_only=True)
class Check:
    part: str
    health: Health
    found: str
    remedy: str = ""


async def python_version() -> Check:
    good = sys.version_info >= (3, 11)
    found = f"{platform.python_version()} at {sys.executable}"
    if not good:
        return Check(part="Python", health=Health.MISSING, found=found, remedy="install Python 3.11 or newer")
    return Check(part="Python", health=Health.GOOD, found=found)


async def machine() -> Check:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = psutil.virtual_memory().available / _GIB
    free = shutil.disk_usage(".").free / _GIB
    found = f"{cores} cores, {memory:.1f} GiB of memory and {free:.1f} GiB of disk free"
    if free < 1:
        return Check(part="machine", health=Health.MISSING, found=found, remedy="free 1 GiB of disk for the run")
    if cores < 2 or memory < 4:
        return Check(part="machine", health=Health.NOTE, found=found, remedy="the quickstart wants 2 cores and 4 GiB")
    return Check(part="machine", health=Health.GOOD, found=found)


async def server() -> Check:
    part = "nats-server"
    try:
        binary = await find_binary()
        with tempfile.TemporaryDirectory(prefix="millrace-doctor-") as folder:
            async with nats_server(Path(folder)) as address:
                return Check(part=part, health=Health.GOOD, found=f"{binary.version_text}, started at {address.url}")
    except MillraceError as error:
        return Check(part=part, health=Health.MISSING, found="does not start", remedy=str(error))


async def chromium() -> Check:
    part = "Chromium"
    try:
        path = find_chromium()
    except MillraceError as error:
        return Check(part=part, health=Health.MISSING, found="none", remedy=str(error))
    with tempfile.TemporaryDirectory(prefix="millrace-doctor-", ignore_cleanup_errors=True) as folder:
        screenshot = Path(folder) / "blank.png"
        sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
        flags = ("--headless", "--disable-gpu", "--disable-dev-shm-usage", *sandbox, f"--user-data-dir={folder}/profile")
        code, output = await _output(str(path), *flags, f"--screenshot={screenshot}", "about:blank")
        if code == _TOO_LONG:
            return _busy(part, str(path))
        if not screenshot.is_file():
            remedy = f"{path} took no screenshot (exit code {code}: {output[-200:].strip()}); install another Chromium"
            return Check(part=part, health=Health.MISSING, found=str(path), remedy=remedy)
    code, version = await _output(str(path), "--version")
    name = path if code else version.strip()
    return Check(part=part, health=Health.GOOD, found=f"{name}, takes screenshots")


_TORCH = """
import json, torch, torchvision
from torchvision.ops import nms
nms(torch.zeros(1, 4), torch.zeros(1), 0.5)
device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
print(json.dumps(f"{torch.__version__} with torchvision {torchvision.__version__} on {device}"))
"""


async def torch() -> Check:
    if installed("torch") is None:
        return Check(
            part="torch", health=Health.MISSING, found="not installed", remedy=install_command(quickstart_extras()[0])
        )
    code, output = await _output(sys.executable, "-c", _TORCH)
    if code == _TOO_LONG:
        return _busy("torch", installed("torch") or "")
    if code:
        # Two builds that do not belong together fail only when the first operator is used.
        found = f"{installed('torch')} and torchvision {installed('torchvision')} do not work together"
        return Check(part="torch", health=Health.MISSING, found=found, remedy=install_command(quickstart_extras()[0]))
    return Check(part="torch", health=Health.GOOD, found=json.loads(output.splitlines()[-1]))


def packages(role: str, *extras: str, without: str = "") -> Callable[[], Awaitable[Check]]:
    """Whether one of the extras is complete. What a role can do `without` it makes it one worth knowing, no more."""

    async def check() -> Check:
        part = f"{role}'s packages"
        complete = next((extra for extra in extras if not lacking(extra)), None)
        if complete:
            found = ", ".join(f"{name} {installed(name)}" for name in pins(complete))
            return Check(part=part, health=Health.GOOD, found=found)
        nearest = min(extras, key=lambda extra: len(lacking(extra)))
        found, remedy = f"not installed: {', '.join(lacking(nearest))}", install_command(nearest)
        if without:
            return Check(part=part, health=Health.NOTE, found=f"{without}; {found}", remedy=remedy)
        return Check(part=part, health=Health.MISSING, found=found, remedy=remedy)

    return check


async def judge_key() -> Check:
    """Says that a key is there, and never what it is."""
    part, variable = "judge's key", OpenAIConfig().openai_api_key_env_var
    if os.environ.get(variable):
        return Check(part=part, health=Health.GOOD, found=f"{variable} is set")
    remedy = f"export {variable}=..., or name another variable or a model of your own: docs/judges.md"
    return Check(part=part, health=Health.NOTE, found=f"{variable} is not set: rubric_v1 cannot ask", remedy=remedy)


async def gpu() -> Check:
    part = "GPU"
    if shutil.which("nvidia-smi") is None:
        return Check(part=part, health=Health.NOTE, found="none: everything runs on the CPU")
    code, output = await _output("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader")
    if code:
        return Check(part=part, health=Health.NOTE, found="nvidia-smi fails", remedy="mend the driver, or go on without a GPU")
    remedy = "" if installed("vllm") else f"to use it: {install_command('browser', 'policy', 'trainer')}"
    return Check(part=part, health=Health.GOOD, found="; ".join(output.splitlines()), remedy=remedy)


_MACHINE = (python_version, machine)
_TENSORS = (gpu, torch)
CHECKS: dict[str, tuple[Callable[[], Awaitable[Check]], ...]] = {
    "server": (*_MACHINE, server),
    "feeder": (*_MACHINE, packages("feeder", "feeder")),
    "browser": (*_MACHINE, chromium, packages("browser", "browser")),
    "policy": (*_MACHINE, *_TENSORS, packages("policy", "policy", "policy-cpu")),
    "judge": (*_MACHINE, packages("judge", "judge", without="only judges that look at checks and rewards"), judge_key),
    "trainer": (*_MACHINE, *_TENSORS, packages("trainer", "trainer")),
    "archive": (*_MACHINE, packages("archive", "archive")),
    "monitor": (*_MACHINE, packages("monitor", "monitor")),
}
"""What each role needs, and `millrace archive` and `monitor`."""


def checks_of(roles: Iterable[str]) -> list[Callable[[], Awaitable[Check]]]:
    """Each once; without roles, what the quickstart needs."""
    if named := list(roles):
        return list(dict.fromkeys(check for role in named for check in CHECKS[role]))
    return [*_MACHINE, *_TENSORS, server, chromium, packages("quickstart", *quickstart_extras()), judge_key]


def _busy(part: str, found: str) -> Check:
    """What is too slow to be tried is not broken."""
    remedy = "look again when this machine has less to do"
    return Check(part=part, health=Health.NOTE, found=f"{found}, not tried: it took longer than {_TRY_S:g} s", remedy=remedy)


async def _output(*command: str) -> tuple[int, str]:
    """Exit code and output of a command; `_TOO_LONG` when it took too long, 127 when it cannot be run."""
    try:
        with anyio.fail_after(_TRY_S):
            done = await run_process(command, stderr=subprocess.STDOUT)
    except TimeoutError:
        return _TOO_LONG, "took too long"
    except OSError as error:
        return 127, str(error)
    return done.returncode, done.stdout.decode(errors="replace")
