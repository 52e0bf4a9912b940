"""A run of real role processes around simulated browsers and policies, measured from outside: time, processor, memory.

Browsers, policies and judges are up and waiting before the feeder starts, so that no figure holds the start of a process.
"""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import psutil

from bus.background import background
from bus.ports import Bus
from bus.subjects import Subjects
from ops.config.loading import load_config
from ops.drills.servers import EmbeddedServer, Servers, cluster_servers
from ops.processes.local_roles import LocalRoles, local_roles
from ops.processes.supervisor import Supervisor
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.simulation.material import ensure_task_file
from schemas.config import Config
from schemas.messages import Heartbeat, Role
from tests.deadlines import HANGS_S

_SAMPLE_S = 0.5
_MIB = 1024 * 1024


@dataclass
class Usage:
    """What the processes of each role used: processor seconds since `begin`, and the largest sum of resident memory."""

    supervisor: Supervisor
    cpu_s: dict[str, float] = field(default_factory=dict)
    peak_mib: dict[str, float] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)

    async def watch(self) -> None:
        while True:
            for role, processes in self._processes().items():
                with suppress(psutil.Error):
                    used = sum(process.memory_info().rss for process in processes) / _MIB
                    self.peak_mib[role] = max(self.peak_mib.get(role, 0.0), used)
            await anyio.sleep(_SAMPLE_S)

    def begin(self) -> None:
        self._since = self._spent()

    def end(self) -> None:
        self.cpu_s = {role: spent - self._since.get(role, 0.0) for role, spent in self._spent().items()}

    def _spent(self) -> dict[str, float]:
        return {
            role: sum(sum(process.cpu_times()[:2]) for process in processes) for role, processes in self._processes().items()
        }

    def _processes(self) -> Mapping[str, list[psutil.Process]]:
        found: dict[str, list[psutil.Process]] = {}
        for status in self.supervisor.statuses:
            pid = self.supervisor.pid(status.name)
            if pid is None:
                continue
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                found.setdefault(status.role.value, []).append(process)
                if status.role is Role.SERVER:
                    found["nats-server"] = process.children(recursive=True)
        return found


@dataclass
class SimulatedRun:
    """One run; `play` feeds it."""

    bus: Bus
    subjects: Subjects
    config: Config
    roles: LocalRoles
    servers: Servers
    usage: Usage
    seconds: float = 0.0

    async def play(self, limit_s: float) -> None:
        """Feeds until every episode is judged.

        Raises:
            TimeoutError: that took longer than `limit_s` seconds.
            ConfigurationError: a role cannot run.
        """
        self.usage.begin()
        began = time.monotonic()
        self.roles.start(Role.FEEDER)
        with anyio.fail_after(limit_s):
            await self.roles.finished(Role.FEEDER)
        self.seconds = time.monotonic() - began
        self.usage.end()

    async def wait_ready(self, roles: Mapping[Role, int]) -> None:
        """Returns when so many workers of each role have said that they wait for work."""
        with anyio.fail_after(HANGS_S):
            while True:
                records = await self.bus.history(self.subjects.heartbeats, self.subjects.everything("heartbeat"))
                beats = [record.message for record in records if isinstance(record.message, Heartbeat)]
                waiting = [beat.role for beat in beats if beat.state in ("waiting", "working")]
                if all(waiting.count(role) >= count for role, count in roles.items()):
                    return
                await anyio.sleep(0.2)


@asynccontextmanager
async def simulated_run(
    folder: Path, overrides: Sequence[str], crew: Mapping[Role, int], *, num_servers: int = 1
) -> AsyncIterator[SimulatedRun]:
    """Starts servers and crew in `folder` (absolute), in rollout mode; everything is stopped on leaving.

    Raises:
        TimeoutError: the crew does not get ready; the logs in `folder` say why.
    """
    run_folder = RunFolder(folder)
    paths = [f"save_path={run_folder.path}", f"data_path={run_folder.path}"]
    config = load_config("simulation", ["feeder_config.mode=rollout", *overrides, *paths])
    run_folder.create(config)
    ensure_task_file(run_folder.tasks / "train.jsonl", num_tasks=config.env_config.train_tasks_rollout_size)
    async with local_roles(run_folder) as roles, AsyncExitStack() as stack:
        servers: Servers = EmbeddedServer(roles.supervisor, "server-1")
        if num_servers > 1:
            led = (subjects_of(config).episodes(0),)
            servers = cluster = await stack.enter_async_context(cluster_servers(run_folder, config.bus_config, led))
            keys = run_folder.server / "keys" / config.bus_config.run
            config = replace(config, bus_config=replace(config.bus_config, url=cluster.url, keys=str(keys)))
            run_folder.create(config)
        await roles.serve(config)
        bus = await stack.enter_async_context(join(run_folder, config, role="monitor", name="benchmark"))
        for role, count in crew.items():
            roles.start(role, count=count)
        run = SimulatedRun(bus, subjects_of(config), config, roles, servers, Usage(roles.supervisor))
        await run.wait_ready(crew)
        async with background(run.usage.watch):
            yield run
