"""A simulated run of real role processes whose ages are shortened, so that records age out while it goes on; followed."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio

from bus.background import background
from bus.following import patient_tail
from bus.ports import Bus
from bus.subjects import Subjects
from ops.audit.following import Passing
from ops.config.loading import load_config
from ops.drills.failed import DrillFailed
from ops.processes.restarts import RestartPolicy
from ops.processes.role_process import millrace_command
from ops.processes.supervisor import RoleSpec, RoleState, RoleStatus, Supervisor, supervise
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.simulation.material import ensure_task_file
from schemas.config import Config
from schemas.errors import BusUnavailable, ConfigurationError
from schemas.ids import WorkerId
from schemas.messages import Heartbeat, Role, Split
from trainer.feeding.admission import Admitter

_RESTARTS = RestartPolicy(first_delay_s=0.1, longest_delay_s=1.0, healthy_after_s=5.0)
_READY_S = 120.0
_SETTLED_S = 120.0
_REPAIRED_S = 1.0
_LOOK_S = 0.1
_NUM_TASKS = 200
CREW: Mapping[Role, int] = {Role.FEEDER: 2, Role.BROWSER: 1, Role.POLICY: 1, Role.JUDGE: 1, Role.TRAINER: 1}


@dataclass(frozen=True, kw_only=True)
class ScaledSettings:
    folder: Path
    day_s: float = 6.0
    """Seconds that stand for a day: chains are kept for seven of them, results for thirty."""
    num_iterations: int = 100_000
    seed: int = 0
    overrides: Sequence[str] = ()

    def config(self) -> Config:
        config = load_config(
            "simulation",
            [
                "bus_config.run=days",
                f"bus_config.episodes_max_age_s={7 * self.day_s}",
                f"bus_config.results_max_age_s={30 * self.day_s}",
                "bus_config.task_ack_wait_s=3",
                "bus_config.judge_ack_wait_s=3",
                "env_config.train_tasks_rollout_size=10",
                "env_config.server_size=4",
                f"feeder_config.num_iterations={self.num_iterations}",
                f"feeder_config.seed={self.seed}",
                "feeder_config.lease_s=1",
                "feeder_config.max_concurrent=8",
                f"simulation_config.seed={self.seed}",
                "simulation_config.mean_steps=2",
                "simulation_config.step_latency_ms=100",
                "simulation_config.policy_latency_ms=20",
                *self.overrides,
            ],
        )
        return replace(config, save_path=str(self.folder), data_path=str(self.folder))


@dataclass
class _Ends:
    """Of roles, for good."""

    told: list[str] = field(default_factory=list)

    def note(self, status: RoleStatus) -> None:
        if status.state is RoleState.FATAL:
            self.told.append(f"{status.name} cannot run: {status.note}")

    def require_none(self) -> None:
        """Raises `DrillFailed`."""
        if self.told:
            raise DrillFailed(self.told[0])


@dataclass
class ScaledRun:
    """Its roles can be stopped and started by name; what passes on its streams is followed."""

    folder: RunFolder
    config: Config
    bus: Bus
    subjects: Subjects
    supervisor: Supervisor
    passing: Passing = field(default_factory=Passing)
    feeders: dict[WorkerId, Heartbeat] = field(default_factory=dict)
    """The newest heartbeat of each."""
    ends: _Ends = field(default_factory=_Ends)

    def start(self, role: Role, name: str) -> None:
        arguments = (role.value, "--run-dir", str(self.folder.path), "--name", name)
        self.supervisor.start(RoleSpec(role=role, name=name, argv=millrace_command(arguments)))

    def leader(self) -> WorkerId | None:
        """The feeder that holds the lease, as it says itself."""
        leading = [beat for beat in self.feeders.values() if beat.state not in ("standby", "starting")]
        return max(leading, key=lambda beat: beat.at).worker if leading else None

    async def until(self, holds: Callable[[], bool], *, limit_s: float = 120.0) -> bool:
        """Whether it came to hold: what passes announces nothing. Raises `DrillFailed` where a role cannot run."""
        with anyio.move_on_after(limit_s):
            while not holds():
                self.ends.require_none()
                await anyio.sleep(_LOOK_S)
        return holds()

    async def settle(self) -> None:
        """Stops admission, and lets everything that was admitted come to its end.

        A feeder that is stopped may leave an episode with its chain begun and not queued, which the next to lead would queue.
        """
        await self.supervisor.stop(*names_of(Role.FEEDER))
        async with join(self.folder, self.config, role=Role.FEEDER.value, name="drill") as bus:
            admitter = Admitter(bus, self.subjects)
            with anyio.move_on_after(_SETTLED_S):
                # Again and again: what was admitted last may be heard of last.
                while not await self.until(lambda: self.has_settled, limit_s=_REPAIRED_S):
                    for episode in self.passing.unfinished:
                        await admitter.repair(episode, Split(episode.partition("-")[0]))

    @property
    def has_settled(self) -> bool:
        """Everything that was admitted has ended, and is judged."""
        return not self.passing.unfinished and set(self.passing.judged) == set(self.passing.published)

    async def follow(self, stream: str, subject: str) -> None:
        async with patient_tail(self.bus, stream, subject) as records:
            async for record in records:
                if isinstance(record.message, Heartbeat):
                    self.feeders[record.message.worker] = record.message
                else:
                    self.passing.apply(record)


def names_of(role: Role) -> tuple[str, ...]:
    return tuple(f"{role.value}-{number}" for number in range(1, CREW[role] + 1))


@asynccontextmanager
async def scaled_run(settings: ScaledSettings) -> AsyncIterator[ScaledRun]:
    """Plays from here on until the context is left.

    Raises:
        ConfigurationError: the folder holds a run already, or no server comes up.
        DrillFailed: a role gave up for good.
    """
    ends = _Ends()
    folder, config = RunFolder(settings.folder.resolve()), settings.config()
    if folder.config.exists():
        raise ConfigurationError(f"{folder.path} holds a run already: choose another folder with --out")
    folder.create(config)
    for split in ("train", "test"):
        ensure_task_file(folder.tasks / f"{split}.jsonl", num_tasks=_NUM_TASKS)
    server = RoleSpec(
        role=Role.SERVER,
        name="server-1",
        argv=millrace_command(("server", "--run-dir", str(folder.path), "--name", "server-1")),
    )
    async with supervise(folder.logs, on_change=ends.note, policy=_RESTARTS) as supervisor:
        supervisor.start(server)
        await _ready(folder, config, ends)
        async with join(folder, config, role="monitor", name="drill") as bus:
            run = ScaledRun(folder, config, bus, subjects_of(config), supervisor, ends=ends)
            async with background(*(partial(run.follow, *source) for source in _sources(run.subjects))):
                for role in CREW:
                    for name in names_of(role):
                        run.start(role, name)
                yield run


def _sources(names: Subjects) -> list[tuple[str, str]]:
    return [
        (names.episodes(0), names.chains(0, "task")),
        (names.episodes(0), names.chains(0, "done")),
        (names.episodes(0), f"{names.run}.ep.0.*.*.start.0"),
        (names.trajectories, names.everything("trajectory")),
        (names.judged, names.everything("judged")),
        (names.checkpoints, names.everything("checkpoint")),
        (names.heartbeats, names.everything("heartbeat", Role.FEEDER.value)),
    ]


async def _ready(folder: RunFolder, config: Config, ends: _Ends) -> None:
    with anyio.move_on_after(_READY_S):
        while True:
            ends.require_none()
            try:
                async with join(folder, config, role="monitor", name="drill") as bus:
                    await bus.last_seq(subjects_of(config).feeding)
                    return
            except (ConfigurationError, BusUnavailable):
                await anyio.sleep(_LOOK_S)
    raise ConfigurationError(f"no server answered within {_READY_S:g} s: see {folder.logs}")
