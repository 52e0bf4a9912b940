"""A real Slurm of two nodes on this machine, of this user's own: munge, a controller and two slurmd, on ports of their own."""

import os
import pwd
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from bus.server.ports import free_ports
from tests.support.polling import until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "sinfo")
_WHERE = f"{os.defpath}:/usr/sbin:/sbin"


def is_installed() -> bool:
    return all(shutil.which(name, path=_WHERE) for name in PROGRAMS)


@dataclass(frozen=True)
class Slurm:
    environment: Mapping[str, str]

    async def says(self, program: str, *arguments: str, check: bool = True) -> str:
        done = await anyio.run_process([_found(program), *arguments], env=self.environment, check=check)
        return done.stdout.decode().strip()

    async def submit(self, script: Path) -> str:
        """Returns the job's number."""
        return await self.says("sbatch", "--parsable", str(script))

    async def state(self, job: str) -> str:
        """As `COMPLETED 0:0`: with the exit code, and the signal."""
        said = await self.says("scontrol", "-o", "show", "job", job)
        known = dict(word.split("=", 1) for word in said.split() if "=" in word)
        return f"{known['JobState']} {known['ExitCode']}"

    async def stands_at(self, job: str, state: str) -> bool:
        return await self.state(job) == state

    async def is_up(self) -> bool:
        return await self.says("sinfo", "--noheader", "--format=%D %T", check=False) == "2 idle"


@asynccontextmanager
async def slurm() -> AsyncIterator[Slurm]:
    folder = Path(tempfile.mkdtemp(prefix="slurm."))  # a socket's path is bounded
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    _write(folder)
    daemons = [
        ("munged", "--force", "--foreground", f"--key-file={folder}/key", f"--socket={folder}/munge",
         *(f"--{name}-file={folder}/munge.{name}" for name in ("pid", "log", "seed"))),
        ("slurmctld", "-D"),
        *(("slurmd", "-D", "-N", name) for name in ("n1", "n2")),
    ]  # fmt: skip
    try:
        async with AsyncExitStack() as stack:
            for program, *arguments in daemons:
                output = stack.enter_context((folder / f"{program}.out").open("ab"))
                process = await stack.enter_async_context(
                    await anyio.open_process(
                        [_found(program), *arguments], env=environment, stdout=output, stderr=output, start_new_session=True
                    )
                )
                stack.callback(process.terminate)
            it = Slurm(environment)
            await until(it.is_up)
            try:
                yield it
            finally:
                with anyio.CancelScope(shield=True):
                    await it.says("scancel", "--me")  # what a failed test left
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _found(program: str) -> str:
    return shutil.which(program, path=_WHERE) or program


def _write(folder: Path) -> None:
    host, user = socket.gethostname(), pwd.getpwuid(os.geteuid()).pw_name
    controller, *daemons = free_ports(3)
    settings = {
        "ClusterName": "test",
        "SlurmctldHost": f"{host}(127.0.0.1)",
        "SlurmctldPort": controller,
        "SlurmUser": user,
        "SlurmdUser": user,
        "AuthInfo": f"socket={folder}/munge",
        "StateSaveLocation": folder,
        "SlurmctldPidFile": folder / "controller.pid",
        "SlurmdPidFile": folder / "%n.pid",
        "SlurmdSpoolDir": folder / "%n",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "MpiDefault": "none",
        "MessageTimeout": 100,
        "BatchStartTimeout": 100,
    }
    node = f"NodeHostname={host} NodeAddr=127.0.0.1"
    nodes = [f"NodeName=n{number} {node} Port={port}" for number, port in enumerate(daemons, start=1)]
    lines = [*(f"{name}={value}" for name, value in settings.items()), *nodes, "PartitionName=all Nodes=ALL Default=YES"]
    (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o600)
