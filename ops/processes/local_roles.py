"""The roles of one run on this machine, named `<role>-1` and so on, under one supervisor."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from bus.background import background
from bus.server.lock import has_own_server
from bus.server.patience import reading_s, size_of, tell_of_reading
from bus.topology import streams
from ops.processes.role_process import millrace_command
from ops.processes.supervisor import RoleSpec, RoleState, RoleStatus, Supervisor, supervise
from ops.run.alone import alone
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from schemas.config import Config
from schemas.errors import BusUnavailable, ConfigurationError
from schemas.messages import Role

_log = structlog.get_logger()
_SERVER_S = 180.0
"""For its process and its streams, beside what it has to read."""
_ENDING_S = 60.0
"""For the server that a killed run left behind: it ends guard by guard."""
_RETRY_S = 0.1


@dataclass
class Statuses:
    """How every role stands, and whether one cannot run."""

    by_name: dict[str, RoleStatus] = field(default_factory=dict)
    """In the order in which they were first started."""
    failed: anyio.Event = field(default_factory=anyio.Event)

    def note(self, status: RoleStatus) -> None:
        self.by_name[status.name] = status
        if status.state is RoleState.FATAL:
            self.failed.set()

    def forget_ended(self) -> None:
        self.by_name = {name: status for name, status in self.by_name.items() if not status.state.ended}

    def raise_failure(self) -> None:
        """Raises `ConfigurationError` with the sentence of the first role that cannot run."""
        for status in self.by_name.values():
            if status.state is RoleState.FATAL:
                raise ConfigurationError(f"{status.name} cannot run: {status.note}")


class LocalRoles:
    """Had from `local_roles`; what waits raises `ConfigurationError` as soon as any role cannot run."""

    def __init__(
        self,
        folder: RunFolder,
        supervisor: Supervisor,
        statuses: Statuses,
        *,
        config: Path | None = None,
        prefix: str = "",
    ) -> None:
        """`config`: in place of the one that is stored in the run's folder; `prefix`: before every name."""
        self.supervisor = supervisor
        self.statuses = statuses
        self._folder = folder
        self._config = config or folder.config
        self._prefix = prefix

    def guests(self, config: Path, *, prefix: str) -> "LocalRoles":
        """The roles of another run on the same server, with a configuration of their own."""
        return LocalRoles(self._folder, self.supervisor, self.statuses, config=config, prefix=prefix)

    async def serve(self, config: Config) -> None:
        """Starts the run's own server, unless it has one elsewhere, and waits until it answers and has the run's streams.

        Raises:
            ConfigurationError: it cannot run, or another process runs it already.
            BusUnavailable: it did not answer.
        """
        num_bytes = 0
        if not config.bus_config.url:
            await self._no_other_serves()
            num_bytes = await anyio.to_thread.run_sync(size_of, self._folder.server / "jetstream")
            self.start(Role.SERVER)
        longest_s = _SERVER_S + reading_s(num_bytes)
        with anyio.move_on_after(longest_s):
            async with background(partial(tell_of_reading, num_bytes)):
                if await self._answers(config):
                    return
        self.statuses.raise_failure()
        raise BusUnavailable(f"nats-server did not answer within {longest_s:.0f} s: see {self._folder.logs}")

    async def _answers(self, config: Config) -> bool:
        """Waits for it; False: a role cannot run."""
        while not self.statuses.failed.is_set():
            try:
                async with join(self._folder, config, role=Role.MONITOR.value, name="local") as bus:
                    await bus.last_seq(streams(subjects_of(config), config.bus_config)[-1].name)
                    return True
            except (ConfigurationError, BusUnavailable):
                # The address file or the port is not there yet; a server that cannot run ends as a fatal role.
                await anyio.sleep(_RETRY_S)
        return False

    async def _no_other_serves(self) -> None:
        """What a killed run left behind is about to end, and who only reads is waited for by the server."""
        with anyio.move_on_after(_ENDING_S):
            if has_own_server(self._folder.server):
                _log.warning("server_awaited", reason="another process runs it", at_the_longest=f"{_ENDING_S:.0f} s")
            while has_own_server(self._folder.server):  # noqa: ASYNC110 - another process's end is announced by nobody
                await anyio.sleep(_RETRY_S)
            return
        raise ConfigurationError(
            f"another process runs the server of {self._folder.path}, maybe with workers beside it: end it, or choose another "
            "folder"
        )

    def start(self, *roles: Role, count: int = 1) -> None:
        """Begins to keep `count` processes of each role running."""
        where = ("--run-dir", str(self._folder.path), "--config", str(self._config))
        for role in roles:
            for number in range(1, count + 1):
                name = self._name(role, number)
                argv = millrace_command((role.value, *where, "--name", name))
                self.supervisor.start(RoleSpec(role=role, name=name, argv=argv))

    async def finished(self, role: Role) -> None:
        """Returns when this role has done its work."""
        await self._finished(self._name(role))

    async def run(self, spec: RoleSpec) -> None:
        """Runs a process that is no role of the run, until it has done its work."""
        self.supervisor.start(spec)
        await self._finished(spec.name)

    async def _finished(self, name: str) -> None:
        async with anyio.create_task_group() as group:

            async def watch_failures() -> None:
                await self.statuses.failed.wait()
                group.cancel_scope.cancel()

            group.start_soon(watch_failures)
            await self.supervisor.wait(name)
            group.cancel_scope.cancel()
        self.statuses.raise_failure()

    async def stop(self, *roles: Role) -> None:
        """Returns when these roles are gone."""
        await self.supervisor.stop(*(self._name(role) for role in roles))

    def _name(self, role: Role, number: int = 1) -> str:
        return f"{self._prefix}{role.value}-{number}"


@asynccontextmanager
async def local_roles(folder: RunFolder) -> AsyncIterator[LocalRoles]:
    """Everything that was started is stopped on leaving.

    Raises:
        ConfigurationError: another process keeps roles running in this folder.
    """
    statuses = Statuses()
    with alone(folder):
        async with supervise(folder.logs, on_change=statuses.note) as supervisor:
            yield LocalRoles(folder, supervisor, statuses)
