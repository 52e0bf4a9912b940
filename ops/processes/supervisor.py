"""Keeps the roles of one machine running: each under its guard, restarted when it crashes, gone when the supervisor is.

A role is stopped by SIGTERM to its guard, which passes it on and kills what is left after the grace period. All roles stop
in parallel, the server behind them, so that they can hand back what they hold: with the default grace everything is gone
within 10 s. Should the supervisor itself be killed, the kernel tells every guard.
"""

import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from os import getpid
from pathlib import Path

import anyio
import psutil
import structlog
from anyio.abc import Process, TaskGroup

from bus.child_process import start_process
from bus.output_file import ended, open_output
from ops.processes.guard import guard_command
from ops.processes.restarts import EXIT_RESTART, Fatal, Finished, Restart, RestartPolicy, Restarts
from ops.processes.role_process import describe_end, exit_code, supervised_environment
from schemas.messages import Role

_log = structlog.get_logger()
_POLICY = RestartPolicy()
_GRACE_S = 6.0
_SERVER_GRACE_S = 2.0
_EXIT_NOT_STARTED = 71
"""The system could not start the process (sysexits: EX_OSERR)."""


class RoleState(Enum):
    RUNNING = "running"
    WAITING = "waiting"
    """Crashed; to be started again after a delay."""
    FINISHED = "finished"
    FATAL = "fatal"
    STOPPED = "stopped"

    @property
    def ended(self) -> bool:
        return self in (RoleState.FINISHED, RoleState.FATAL, RoleState.STOPPED)


@dataclass(frozen=True, kw_only=True)
class RoleSpec:
    """One process to keep running."""

    role: Role
    name: str
    """Unique on this machine; names the output file."""
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """In addition to the supervisor's own environment."""
    folder: Path | None = None
    """Where it is started; None: where the supervisor was."""


@dataclass(frozen=True, kw_only=True)
class RoleStatus:
    """Where one role stands; a new value at every change."""

    role: Role
    name: str
    state: RoleState = RoleState.RUNNING
    note: str = ""
    """Why it last ended: the last line of its output, or the signal."""
    num_restarts: int = 0
    exit_code: int | None = None
    """Of the last end; 128 + n after signal n."""


@dataclass
class _Kept:
    spec: RoleSpec
    status: RoleStatus
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)
    guard: Process | None = None
    told_to_leave: bool = False

    @property
    def is_server(self) -> bool:
        return self.spec.role is Role.SERVER


class Supervisor:
    """Had from `supervise`, which stops everything on leaving."""

    def __init__(
        self, group: TaskGroup, logs: Path, on_change: Callable[[RoleStatus], None], policy: RestartPolicy, grace_s: float
    ) -> None:
        self._group = group
        self._logs = logs
        self._on_change = on_change
        self._policy = policy
        self._grace_s = grace_s
        self._kept: dict[str, _Kept] = {}

    @property
    def statuses(self) -> tuple[RoleStatus, ...]:
        """In the order in which the roles were first started."""
        return tuple(kept.status for kept in self._kept.values())

    def start(self, spec: RoleSpec) -> None:
        """Begins to keep a role running. A name can be used again once its role has ended."""
        earlier = self._kept.get(spec.name)
        if earlier is not None and not earlier.ended.is_set():
            raise ValueError(f"a role named {spec.name} is running already")
        kept = _Kept(spec, RoleStatus(role=spec.role, name=spec.name))
        self._kept[spec.name] = kept
        self._group.start_soon(self._keep, kept)

    async def wait(self, name: str) -> RoleStatus:
        """Returns when the role has finished, failed for good, or was stopped."""
        kept = self._kept[name]
        await kept.ended.wait()
        return kept.status

    async def stop(self, *names: str) -> None:
        """Stops these roles, or all when none is named; returns when they are gone."""
        stopped = [self._kept[name] for name in names] or list(self._kept.values())
        for kept in stopped:
            kept.scope.cancel()
        for kept in stopped:
            await kept.ended.wait()

    def drain(self, *names: str) -> None:
        """Tells these roles, or all but the server when none is named, to finish what they hold and end.

        However one ends then, it is not started again: nobody would tell its successor.
        """
        drained = [self._kept[name] for name in names] or [kept for kept in self._kept.values() if not kept.is_server]
        for kept in drained:
            kept.told_to_leave = True
            if kept.guard is None:
                kept.scope.cancel()  # it waits to be started again, and holds nothing
                continue
            with suppress(ProcessLookupError):
                kept.guard.send_signal(signal.SIGUSR1)

    def pid(self, name: str) -> int | None:
        """Process id of the role itself, below its two guards; None while it is not up."""
        guard = self._kept[name].guard
        if guard is None:
            return None
        with suppress(psutil.Error):
            for inner in psutil.Process(guard.pid).children():
                for role in inner.children():
                    return role.pid
        return None

    async def _keep(self, kept: _Kept) -> None:
        restarts = Restarts(policy=self._policy)
        try:
            with kept.scope:
                while not kept.status.state.ended:
                    self._change(kept, state=RoleState.RUNNING)
                    began = anyio.current_time()
                    code = await self._run(kept)
                    restarts, decision = restarts.after_exit(code, anyio.current_time() - began)
                    note = "" if code in (0, EXIT_RESTART) else describe_end(code, self._output(kept))
                    match decision:
                        case Finished():
                            self._change(kept, state=RoleState.FINISHED, note="", exit_code=code)
                        case Fatal():
                            self._change(kept, state=RoleState.FATAL, note=note, exit_code=code)
                        case Restart() if kept.told_to_leave:
                            self._change(kept, state=RoleState.STOPPED, note=note, exit_code=code)
                        case Restart(delay_s=0.0):
                            continue
                        case _:
                            count = restarts.num_restarts
                            self._change(kept, state=RoleState.WAITING, note=note, exit_code=code, num_restarts=count)
                            await anyio.sleep(decision.delay_s)
        finally:
            if not kept.status.state.ended:
                self._change(kept, state=RoleState.STOPPED)
            kept.ended.set()

    async def _run(self, kept: _Kept) -> int:
        """One life of a role: its exit code. Cancelling stops it, and goes on when it is gone."""
        try:
            process = await self._open(kept)
        except OSError as error:
            _log.warning("role_not_started", role_name=kept.spec.name, error=str(error))
            return _EXIT_NOT_STARTED
        kept.guard = process
        try:
            # A signal may have ended the guard before it could pass it on.
            return exit_code(await ended(process, self._output(kept)))
        finally:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    await self._others_ended(kept)
                    await _end(process, self._grace(kept))
            kept.guard = None

    async def _open(self, kept: _Kept) -> Process:
        command = guard_command(kept.spec.argv, parent=getpid(), grace_s=self._grace(kept))
        with open_output(self._output(kept)) as output:
            return await start_process(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**supervised_environment(), **kept.spec.env},
                cwd=kept.spec.folder,
                start_new_session=True,  # the terminal's Ctrl-C goes to the supervisor alone
            )

    async def _others_ended(self, kept: _Kept) -> None:
        """The server waits for the roles that are being stopped with it."""
        if not kept.is_server:
            return
        everything = self._group.cancel_scope.cancel_called
        for other in self._kept.values():
            if not other.is_server and (everything or other.scope.cancel_called):
                await other.ended.wait()

    def _grace(self, kept: _Kept) -> float:
        return min(self._grace_s, _SERVER_GRACE_S) if kept.is_server else self._grace_s

    def _output(self, kept: _Kept) -> Path:
        return self._logs / f"{kept.spec.name}.out"

    def _change(
        self,
        kept: _Kept,
        *,
        state: RoleState,
        note: str | None = None,
        exit_code: int | None = None,
        num_restarts: int | None = None,
    ) -> None:
        before = kept.status
        kept.status = replace(
            before,
            state=state,
            note=before.note if note is None else note,
            exit_code=before.exit_code if exit_code is None else exit_code,
            num_restarts=before.num_restarts if num_restarts is None else num_restarts,
        )
        log = _log.warning if state in (RoleState.WAITING, RoleState.FATAL) else _log.info
        log(f"role_{state.value}", role_name=kept.spec.name, note=kept.status.note, restarts=kept.status.num_restarts)
        self._on_change(kept.status)


async def _end(process: Process, grace_s: float) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    # The guard kills the role after its grace period; this bound is for a guard that is itself stuck.
    with anyio.move_on_after(grace_s + 1.5):
        await process.wait()
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@asynccontextmanager
async def supervise(
    logs: Path,
    *,
    on_change: Callable[[RoleStatus], None] = lambda _: None,
    policy: RestartPolicy = _POLICY,
    grace_s: float = _GRACE_S,
) -> AsyncIterator[Supervisor]:
    """Supervises roles while the context is open.

    Args:
        logs: folder of the roles' output, `<name>.out`.
        on_change: called with a role's new status at every change.
        grace_s: seconds that a role gets to stop by itself.
    """
    async with anyio.create_task_group() as group:
        try:
            yield Supervisor(group, logs, on_change, policy, grace_s)
        finally:
            group.cancel_scope.cancel()
