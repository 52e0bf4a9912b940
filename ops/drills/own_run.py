"""Faults into a person's own run: the role processes of this machine that belong to one run's folder, and no others.

What is killed is started again by whoever supervises it, or not at all.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from ops.drills.faults import Durations, FaultKind
from ops.drills.proxy import TcpProxy
from ops.run.folder import RunFolder
from schemas.bus_config import BusConfig
from schemas.messages import Role

KINDS = (FaultKind.KILL, FaultKind.STOP, FaultKind.EXPIRE, FaultKind.KILL_SERVER, FaultKind.STOP_SERVER)
"""What can happen to a run without having been prepared for it."""
_DEFAULT_RUN_DIR = Path("runs/quickstart")
_OPTIONS = ("--run-dir", "--config", "--name")
"""Of a worker's command; each has a value."""
_ROLES = {role.value for role in Role}
_SERVER = "nats-server"


@dataclass(frozen=True, kw_only=True)
class Found:
    """A process of the run."""

    name: str
    """Unique in the run: the worker's own, or role and process."""
    pid: int


def durations(bus: BusConfig) -> Durations:
    """A stop that expires outlasts the run's longest lease."""
    lease_s = max(bus.task_ack_wait_s, bus.step_ack_wait_s, bus.judge_ack_wait_s)
    return Durations(expire=(lease_s + 2.0, lease_s + 5.0))


class OwnRun:
    """Looked up anew for every fault: processes come and go. An `ops.drills.injection.Arena`."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self.proxies: Mapping[str, TcpProxy] = {}

    def workers(self) -> list[Found]:
        return [found for process in _mine() if (found := self._role(process)) is not None]

    def servers(self) -> list[Found]:
        config = str(self._folder.server.resolve() / "nats.conf")
        return [
            Found(name=_SERVER, pid=process.pid)
            for process in _mine()
            if process.info["name"] == _SERVER and config in (process.info["cmdline"] or ())
        ]

    def worker_pid(self, name: str) -> int | None:
        return next((found.pid for found in self.workers() if found.name == name), None)

    def server_pid(self, name: str) -> int | None:
        return next((found.pid for found in self.servers() if found.name == name), None)

    def crew(self, role: str) -> Sequence[str]:
        return [found.name for found in self.workers() if found.name.startswith(role)]

    async def leader(self) -> str | None:
        return None

    def _role(self, process: psutil.Process) -> Found | None:
        with suppress(psutil.Error):
            return role_of(process.info["cmdline"] or (), process.cwd(), self._folder.path.resolve(), process.pid)
        return None


def role_of(cmdline: Sequence[str], cwd: str, run_dir: Path, pid: int) -> Found | None:
    """The worker that a command line runs, when it is one of this run; guards are not workers."""
    if any(word.endswith("guard.py") for word in cmdline):
        return None
    for index, word in enumerate(cmdline[:-1]):
        is_ours = word == "ops.cli" or Path(word).name == "millrace"
        role = cmdline[index + 1]
        if is_ours and role in _ROLES:
            options, folders = _parted(cmdline[index + 2 :])
            given = options.get("--run-dir") or next(iter(folders), None)
            if given is None and "--config" in options:
                return None  # its folder is named in a file: whose it is cannot be told from here
            if (Path(cwd) / (given or _DEFAULT_RUN_DIR)).resolve() != run_dir:
                return None
            return Found(name=options.get("--name") or f"{role}-{pid}", pid=pid)
    return None


def _parted(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """A worker's options with their values, and the words among its overrides that name the run's folder."""
    options, folders, rest = {}, [], iter(arguments)
    for word in rest:
        name, joined, value = word.partition("=")
        if name in _OPTIONS:
            options[name] = value if joined else next(rest, "")
        elif not joined and not word.startswith(("-", "~")):
            folders.append(word)
    return options, folders


def _mine() -> list[psutil.Process]:
    """Processes of this user."""
    found = []
    for process in psutil.process_iter(["cmdline", "name", "uids"]):
        uids = process.info["uids"]
        if uids is not None and uids.real == os.getuid():
            found.append(process)
    return found
