"""Carries faults out: signals to processes, cuts of proxies, strace on a server's disk. Whatever was stopped goes on again.

Only processes that an `Arena` names are ever touched.
"""

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
import msgspec
import psutil
import structlog

from ops.drills.faults import Fault, FaultKind, Injected
from ops.drills.proxy import TcpProxy
from ops.drills.slow_disk import slow_disk
from ops.simulation.broken_weights import broken_weights
from ops.simulation.clock import shift_clock

_log = structlog.get_logger()


class Arena(Protocol):
    """Where the victims are at this moment."""

    @property
    def proxies(self) -> Mapping[str, TcpProxy]:
        """Of the workers that have one."""
        ...

    def worker_pid(self, name: str) -> int | None:
        """Process id of a worker; None while it is not up."""
        ...

    def server_pid(self, name: str) -> int | None: ...
    def crew(self, role: str) -> Sequence[str]:
        """Names of all workers of a role."""
        ...

    async def leader(self) -> str | None:
        """The server that leads one of the run's streams now."""
        ...


class Injector:
    """Every fault goes into `log` as it begins: memory, and a line of JSON in a file."""

    def __init__(self, arena: Arena, folder: Path, on_fault: Callable[[Injected], None] = lambda _: None) -> None:
        """`folder`: the run's."""
        self._arena = arena
        self._folder = folder
        self._file = folder / "faults.jsonl"
        self._on_fault = on_fault
        self._busy: set[str] = set()
        """Victims whose present fault is not over."""
        self.log: list[Injected] = []
        self.num_missed = 0
        """Faults whose victim was not up, or not over the one before."""

    async def run(self, planned: Iterator[Fault]) -> None:
        """Until cancelled; faults of a duration overlap."""
        async with anyio.create_task_group() as group:
            for fault in planned:
                await anyio.sleep(fault.after_s)
                group.start_soon(self._inject, fault)

    async def _inject(self, fault: Fault) -> None:
        victim = fault.victim
        if fault.kind is FaultKind.KILL_LEADER:
            victim = await self._arena.leader() or ""
        names = self._arena.crew(victim) if fault.kind is FaultKind.AGE else (victim,)
        pids = [pid for name in names if (pid := self._pid(fault.kind, name)) is not None]
        if not pids or self._busy.intersection(names):
            self.num_missed += 1
            return
        self._busy.update(names)
        try:
            await self._carry_out(fault, victim, pids)
        except (ProcessLookupError, psutil.NoSuchProcess):
            self.num_missed += 1
        finally:
            self._busy.difference_update(names)

    def _pid(self, kind: FaultKind, victim: str) -> int | None:
        match kind:
            case FaultKind.SLOW_DISK | FaultKind.KILL_SERVER | FaultKind.STOP_SERVER | FaultKind.KILL_LEADER:
                return self._arena.server_pid(victim)
            case FaultKind.KILL_CHROMIUM:
                return _chromium_of(self._arena.worker_pid(victim))
            case _:
                return self._arena.worker_pid(victim)

    async def _carry_out(self, fault: Fault, victim: str, pids: Sequence[int]) -> None:
        pid = pids[0]
        note = partial(self._note, fault, victim, pid)
        match fault.kind:
            case FaultKind.KILL | FaultKind.KILL_SERVER | FaultKind.KILL_LEADER | FaultKind.KILL_CHROMIUM:
                os.kill(pid, signal.SIGKILL)
                note()
            case FaultKind.STOP | FaultKind.EXPIRE | FaultKind.STOP_SERVER | FaultKind.AGE:
                with _stopped(pids):
                    note()
                    await anyio.sleep(fault.duration_s)
            case FaultKind.CUT:
                self._arena.proxies[victim].cut()
                note()
            case FaultKind.BLACKHOLE:
                with _silenced(self._arena.proxies[victim]):
                    note()
                    await anyio.sleep(fault.duration_s)
            case FaultKind.BREAK_WEIGHTS:
                with broken_weights(self._folder, victim):
                    note()
                    await anyio.sleep(fault.duration_s)
            case FaultKind.CLOCK:
                shift_clock(self._folder, victim, fault.shift_s)
                note()
            case FaultKind.SLOW_DISK:
                async with slow_disk(pid):
                    note()
                    await anyio.sleep(fault.duration_s)

    def _note(self, fault: Fault, victim: str, pid: int) -> None:
        injected = Injected(time.time(), fault.kind, victim, pid, round(fault.duration_s, 3), fault.shift_s)
        self.log.append(injected)
        with self._file.open("ab") as lines:
            lines.write(msgspec.json.encode(injected) + b"\n")
        _log.info(
            "fault_injected", kind=fault.kind, victim=victim, pid=pid, duration_s=injected.duration_s, shift_s=fault.shift_s
        )
        self._on_fault(injected)


@contextmanager
def _stopped(pids: Collection[int]) -> Iterator[None]:
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@contextmanager
def _silenced(proxy: TcpProxy) -> Iterator[None]:
    proxy.silence()
    try:
        yield
    finally:
        # What stood still too long is dead to both ends: they connect anew.
        proxy.resume()


def _chromium_of(worker: int | None) -> int | None:
    if worker is None:
        return None
    with suppress(psutil.Error):
        for child in psutil.Process(worker).children(recursive=True):
            if "chrom" in child.name() or "headless" in child.name():
                return child.pid
    return None
