"""A drill: a whole run of real role processes on this machine, under faults until it has ended, and then the proof.

start       servers, a proxy per worker, the roles, each restarted when it ends
faults      until a feeder has finished; meanwhile the queues are compared with the outputs
settling    without faults, until everything that ended is judged
proof       from the streams alone
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import structlog

from bus.ports import Bus
from bus.server import address_of
from ops.audit.acknowledgements import AcknowledgementWatch
from ops.audit.audit import Audit, audit
from ops.audit.waits import Waiting
from ops.config.overrides import as_overrides
from ops.drills.bounds import late
from ops.drills.failed import DrillFailed
from ops.drills.faults import Durations, FaultKind, faults
from ops.drills.injection import Injector
from ops.drills.memory_watch import MemoryWatch
from ops.drills.proxy import TcpProxy, tcp_proxy
from ops.drills.report import Report
from ops.drills.servers import EmbeddedServer, Servers, cluster_servers
from ops.drills.settings import NUM_TEST_TASKS, DrillSettings
from ops.drills.slow_disk import why_not
from ops.drills.slowness import Slowness
from ops.processes.restarts import RestartPolicy
from ops.processes.role_process import millrace_command
from ops.processes.supervisor import RoleSpec, RoleState, RoleStatus, Supervisor, supervise
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.simulation.material import ensure_demo_task_file, ensure_task_file
from schemas.errors import BusError, BusUnavailable, ConfigurationError
from schemas.messages import Role
from trainer.feeding.curriculum import evaluation_versions
from trainer.retrying import until_available

_RESTARTS = RestartPolicy(first_delay_s=0.1, longest_delay_s=1.0, healthy_after_s=5.0)
"""Quicker than in production: every role is killed over and over."""
_LOOK_S = 1.5
_READY_S = 60.0
_NUM_TASKS = 1000
_HOSTILE_EVERY = 10
"""Of the real pages, one in so many means harm."""
_SERVER = "server-1"
_PROXIED = (FaultKind.CUT, FaultKind.BLACKHOLE)
_WORKER_FAULTS = (FaultKind.KILL, FaultKind.STOP, FaultKind.EXPIRE, FaultKind.CLOCK)
_log = structlog.get_logger()


PHASES = ("starting", "running", "settling", "proving")


@dataclass
class Progress:
    """What a display shows; the drill writes, nobody reads back."""

    phase: str = "starting"
    num_expected: int = 0
    num_judged: int = 0
    num_faults: int = 0


@dataclass
class _Outcome:
    """What became known on the way."""

    ended: anyio.Event = field(default_factory=anyio.Event)
    """A feeder has finished, or a role cannot run."""
    failure: str = ""
    num_restarts: dict[str, int] = field(default_factory=dict)

    def note(self, status: RoleStatus) -> None:
        self.num_restarts[status.name] = status.num_restarts
        if status.state is RoleState.FATAL:
            self.failure = f"{status.name} cannot run: {status.note}"
            self.ended.set()
        elif status.state is RoleState.FINISHED and status.role is Role.FEEDER:
            self.ended.set()


class DrillArena:
    """Where the drill's own processes are; nobody else's can be named."""

    def __init__(self, supervisor: Supervisor, servers: Servers, proxies: Mapping[str, TcpProxy]) -> None:
        self._supervisor = supervisor
        self._servers = servers
        self.proxies = proxies

    def worker_pid(self, name: str) -> int | None:
        return self._supervisor.pid(name)

    def server_pid(self, name: str) -> int | None:
        return self._servers.pid(name)

    def crew(self, role: str) -> Sequence[str]:
        return [status.name for status in self._supervisor.statuses if status.role.value == role]

    async def leader(self) -> str | None:
        return await self._servers.leader()


class Drill:
    """One drill; `progress` says at any time how it stands."""

    def __init__(self, settings: DrillSettings, *, command: str = "") -> None:
        self._settings = settings
        self._command = command
        self._folder = RunFolder(settings.folder.resolve())
        self._config = settings.config()
        self._subjects = subjects_of(self._config)
        self._outcome = _Outcome()
        self._settled = anyio.Event()
        self._unfinished = ""
        self._skipped: dict[FaultKind, str] = {}
        self._specs: dict[Role, list[RoleSpec]] = {}
        self.progress = Progress(num_expected=0 if settings.duration_s else settings.num_episodes)

    async def run(self) -> Report:
        """Plays the run and proves it.

        Raises:
            ConfigurationError: the folder holds a run already, or no fault is possible.
            DrillFailed: a role gave up for good.
        """
        self._prepare()
        began = time.monotonic()
        async with AsyncExitStack() as stack:
            supervisor = await stack.enter_async_context(
                supervise(self._folder.logs, on_change=self._outcome.note, policy=_RESTARTS)
            )
            servers = await self._start_servers(stack, supervisor)
            bus = await stack.enter_async_context(join(self._folder, self._config, role="monitor", name="drill"))
            proxies = await self._start_workers(stack, supervisor)
            arena = DrillArena(supervisor, servers, proxies)
            slowness = Slowness()
            injector = Injector(arena, self._folder.path, lambda _: self._count_fault())
            memory = MemoryWatch(lambda: self._pids(supervisor, servers))
            watch = AcknowledgementWatch(bus, self._subjects, self._config.bus_config)
            async with anyio.create_task_group() as group:
                group.start_soon(memory.run)
                group.start_soon(slowness.run)
                group.start_soon(self._watch, watch)
                if self._settings.duration_s is not None:
                    group.start_soon(self._end_in_time, bus, supervisor)
                await self._under_faults(injector, supervisor, servers, proxies)
                if self._outcome.failure:
                    raise DrillFailed(self._outcome.failure)
                await self._settle()
                with suppress(BusError):
                    await watch.look()
                group.cancel_scope.cancel()
            self.progress.phase = "proving"
            found = await audit(bus, self._config)
        return self._report(found, injector, watch, memory, slowness, time.monotonic() - began)

    # start ------------------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        if self._folder.config.exists():
            raise ConfigurationError(f"{self._folder.path} holds a run already: choose another folder with --out")
        self._folder.create(self._config)
        is_simulated = self._settings.browser == "simulated"
        make = ensure_task_file if is_simulated else partial(ensure_demo_task_file, hostile_every=_HOSTILE_EVERY)
        make(self._folder.tasks / "train.jsonl", num_tasks=min(_NUM_TASKS, self._settings.planned))
        make(self._folder.tasks / "test.jsonl", num_tasks=NUM_TEST_TASKS)

    async def _start_servers(self, stack: AsyncExitStack, supervisor: Supervisor) -> Servers:
        if self._settings.num_servers == 1:
            supervisor.start(self._spec(Role.SERVER, _SERVER))
            await self._ready()
            return EmbeddedServer(supervisor, _SERVER)
        names, bus = self._subjects, self._config.bus_config
        led = (names.episodes(0), names.judged, names.tasks, names.trajectories, names.checkpoints, names.steps)
        servers = await stack.enter_async_context(cluster_servers(self._folder, bus, led))
        self._config = replace(self._config, bus_config=replace(bus, url=servers.url, keys=str(self._keys)))
        self._folder.create(self._config)
        await self._ready()
        return servers

    @property
    def _keys(self) -> Path:
        return self._folder.server / "keys" / self._config.bus_config.run

    async def _ready(self) -> None:
        with anyio.move_on_after(_READY_S):
            while not self._outcome.ended.is_set():
                try:
                    async with join(self._folder, self._config, role="monitor", name="drill") as bus:
                        await bus.last_seq(self._subjects.judged)
                        return
                except (ConfigurationError, BusUnavailable):
                    await anyio.sleep(0.1)
        raise ConfigurationError(self._outcome.failure or f"no server answered within {_READY_S:g} s: see {self._folder.logs}")

    async def _start_workers(self, stack: AsyncExitStack, supervisor: Supervisor) -> dict[str, TcpProxy]:
        proxies: dict[str, TcpProxy] = {}
        proxied = any(kind in _PROXIED for kind in self._settings.possible)
        for role, count in self._settings.crew.items():
            for number in range(1, count + 1):
                name = f"{role.value}-{number}"
                overrides: tuple[str, ...] = ()
                if proxied:
                    proxies[name] = await stack.enter_async_context(tcp_proxy(self._server_port()))
                    overrides = self._through(proxies[name])
                spec = self._spec(role, name, overrides)
                self._specs.setdefault(role, []).append(spec)
                supervisor.start(spec)
        return proxies

    def _spec(self, role: Role, name: str, overrides: Sequence[str] = ()) -> RoleSpec:
        arguments = (role.value, "--run-dir", str(self._folder.path), "--name", name, *overrides)
        return RoleSpec(role=role, name=name, argv=millrace_command(arguments))

    def _server_port(self) -> int:
        port = urlsplit(address_of(self._folder.server).url).port
        assert port is not None
        return port

    def _through(self, proxy: TcpProxy) -> tuple[str, ...]:
        return as_overrides({"bus_config.url": f"nats://127.0.0.1:{proxy.port}", "bus_config.keys": str(self._keys)})

    # the run ----------------------------------------------------------------------------------------------------------

    async def _under_faults(
        self, injector: Injector, supervisor: Supervisor, servers: Servers, proxies: Mapping[str, TcpProxy]
    ) -> None:
        self.progress.phase = "running"
        workers = [status.name for status in supervisor.statuses if status.role is not Role.SERVER]
        planned = faults(
            seed=self._settings.seed,
            mean_interval_s=self._settings.fault_interval_s,
            victims=self._victims(workers, servers.names, proxies),
            durations=Durations(),
        )
        with anyio.move_on_after(self._limit_s) as limit:
            async with anyio.create_task_group() as group:
                group.start_soon(injector.run, planned)
                await self._outcome.ended.wait()
                group.cancel_scope.cancel()
        if limit.cancelled_caught:
            self._unfinished = f"not at its end after {self._limit_s:g} s"

    @property
    def _limit_s(self) -> float:
        return (self._settings.duration_s or 0.0) + self._settings.limit_s

    def _victims(
        self, workers: Sequence[str], servers: Sequence[str], proxies: Mapping[str, TcpProxy]
    ) -> dict[FaultKind, Sequence[str]]:
        found: dict[FaultKind, Sequence[str]] = {}
        for kind in self._settings.possible:
            if kind is FaultKind.SLOW_DISK and (reason := why_not()):
                self._skipped[kind] = reason
            elif kind in _WORKER_FAULTS:
                found[kind] = workers
            elif kind in _PROXIED:
                found[kind] = tuple(proxies)
            elif kind is FaultKind.KILL_CHROMIUM:
                found[kind] = [name for name in workers if name.startswith(Role.BROWSER.value)]
            elif kind is FaultKind.BREAK_WEIGHTS:
                found[kind] = [name for name in workers if name.startswith(Role.POLICY.value)]
            elif kind is FaultKind.AGE:
                found[kind] = [role.value for role in self._settings.crew]
            elif kind is FaultKind.KILL_LEADER:
                found[kind] = [""]
            else:
                found[kind] = servers
        return found

    async def _end_in_time(self, bus: Bus, supervisor: Supervisor) -> None:
        """Has the run end at the first version that all it has admitted fits into; everything else goes on meanwhile."""
        await self._time_is_up()
        feeders, names = self._specs[Role.FEEDER], self._subjects
        await supervisor.stop(*(spec.name for spec in feeders))
        admitted = 0
        for shard in range(names.num_shards):
            listed = await until_available(partial(bus.subjects, names.episodes(shard), names.chains(shard, "task")))
            admitted += len(listed)
        # Evaluation counts too, and a feeder may have intended a batch that it did not come to admit.
        num_iterations = admitted // self._config.env_config.train_tasks_rollout_size + 2
        self._config = replace(self._config, feeder_config=replace(self._config.feeder_config, num_iterations=num_iterations))
        self._folder.store(self._config)
        for spec in feeders:
            supervisor.start(spec)
        self.progress.num_expected = self._num_expected()

    async def _time_is_up(self) -> None:
        await anyio.sleep(self._settings.duration_s or 0.0)

    async def _watch(self, watch: AcknowledgementWatch) -> None:
        while True:
            try:
                await watch.look()
            except BusError as error:
                _log.info("look_skipped", reason=str(error))
            self.progress.num_judged = watch.num_judged
            if self.progress.phase == "settling" and watch.is_settled:
                self._settled.set()
            await anyio.sleep(_LOOK_S)

    async def _settle(self) -> None:
        """Without faults, everything that was begun has to end; what does not is found by the proof."""
        self.progress.phase = "settling"
        with anyio.move_on_after(self._settings.settle_s):
            await self._settled.wait()

    # the metrics ------------------------------------------------------------------------------------------------------

    def _count_fault(self) -> None:
        self.progress.num_faults += 1

    def _num_expected(self) -> int:
        feeder, env = self._config.feeder_config, self._config.env_config
        size = env.test_tasks_rollout_size
        held_out = NUM_TEST_TASKS if size < 0 else min(size, NUM_TEST_TASKS)
        evaluated = len(evaluation_versions(feeder)) * held_out * env.test_tasks_repeat_times
        return feeder.num_iterations * env.train_tasks_rollout_size + evaluated

    def _pids(self, supervisor: Supervisor, servers: Servers) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {"nats-server": [pid for name in servers.names if (pid := servers.pid(name))]}
        for status in supervisor.statuses:
            if (pid := supervisor.pid(status.name)) is not None:
                found.setdefault(status.role.value, []).append(pid)
        return found

    def _leases_s(self) -> dict[Waiting, float]:
        bus = self._config.bus_config
        return {
            Waiting.TAKEOVER: bus.task_ack_wait_s,
            Waiting.ANSWER: bus.step_ack_wait_s,
            # Also of a browser worker that died, whose task comes back for somebody to end it.
            Waiting.END: max(bus.step_ack_wait_s, bus.task_ack_wait_s),
            # What a browser worker ended and did not publish comes back with its task first.
            Waiting.JUDGEMENT: bus.judge_ack_wait_s + bus.task_ack_wait_s,
        }

    def _report(
        self,
        found: Audit,
        injector: Injector,
        watch: AcknowledgementWatch,
        memory: MemoryWatch,
        slowness: Slowness,
        seconds: float,
    ) -> Report:
        return Report(
            command=self._command,
            seed=self._settings.seed,
            num_servers=self._settings.num_servers,
            audit=found,
            faults=tuple(injector.log),
            late=late(found.waits, injector.log, leases_s=self._leases_s(), slowness=slowness.between),
            highest_slowness=round(slowness.highest, 1),
            early_acknowledgements=tuple(sorted(watch.violations)),
            num_looks=watch.num_looks,
            num_expected=self._num_expected(),
            versions_expected=self._config.feeder_config.num_iterations + 1,
            leases_s=self._leases_s(),
            num_restarts=sum(self._outcome.num_restarts.values()),
            duration_s=seconds,
            peak_memory_mib=memory.peak_mib,
            skipped=self._skipped,
            failure=self._unfinished,
        )
