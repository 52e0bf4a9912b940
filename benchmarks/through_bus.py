"""The browser benchmark's schedule through everything: nats-server, a browser worker's process, a policy worker's process."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from benchmarks.browser_schedule import FORMAT, NUM_STEPS, QUALITY, VIEWPORT, first_page
from benchmarks.scripted_policy import episode_id
from bus import chain
from bus.ports import Bus
from bus.subjects import Subjects
from ops.config.loading import load_config
from ops.config.overrides import as_overrides
from ops.processes.local_roles import LocalRoles, local_roles
from ops.processes.supervisor import RoleSpec
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from schemas.config import Config
from schemas.ids import GroupId, PolicyVersion, TaskId
from schemas.messages import Heartbeat, Outcome, Role, Split, Task, Trajectory

_READY_S = 60.0
_EPISODE_S = 300.0


@dataclass
class WholePath:
    """Ready to play: every process is up."""

    bus: Bus
    subjects: Subjects
    config: Config
    pids: tuple[int, ...]
    """The roles' processes; what they have started hangs below them."""
    site: str

    async def play(self, numbers: range, first: int = 0) -> list[Trajectory]:
        """Plays the episodes with these numbers, as many at once as the worker has slots.

        Raises:
            AssertionError: one of them did not play all of its steps.
        """
        subjects = self.subjects
        everything = subjects.everything("trajectory")
        async with self.bus.tail(subjects.trajectories, everything, only_new=True) as trajectories:
            for number in numbers:
                task = self._task(number, index=first + number)
                await chain.admit(self.bus, subjects, task)
                await self.bus.append(subjects.tasks, subjects.task(task.split, task.episode), task)
            with anyio.fail_after(_EPISODE_S * len(numbers)):
                ended = [(await anext(trajectories)).message for _ in numbers]
        played = [message for message in ended if isinstance(message, Trajectory)]
        for trajectory in played:
            assert (trajectory.outcome, trajectory.num_steps) == (Outcome.STEP_LIMIT, NUM_STEPS), trajectory
        return played

    def _task(self, number: int, index: int) -> Task:
        return Task(
            run=self.config.bus_config.run,
            episode=episode_id(number),
            group=GroupId(episode_id(number)),
            task=TaskId(str(number)),
            split=Split.TRAIN,
            index=index,
            policy_version=PolicyVersion(0),
            instruction="Look around.",
            website=f"{self.site}/page/{first_page(number)}",
            max_steps=NUM_STEPS,
        )


@asynccontextmanager
async def whole_path(folder: Path, site: str, num_sessions: int) -> AsyncIterator[WholePath]:
    run_folder = RunFolder(folder)
    config = load_config(
        "simulation",
        [
            "browser_config.engine=playwright",
            f"browser_config.viewport_width={VIEWPORT[0]}",
            f"browser_config.viewport_height={VIEWPORT[1]}",
            f"browser_config.screenshot_format={FORMAT}",
            f"browser_config.jpeg_quality={QUALITY}",
            f"env_config.server_size={num_sessions}",
            "bus_config.task_ack_wait_s=30",
            *as_overrides({"save_path": str(run_folder.path), "data_path": str(run_folder.path)}),
        ],
    )
    run_folder.create(config)
    async with local_roles(run_folder) as roles:
        await roles.serve(config)
        policy = RoleSpec(
            role=Role.POLICY, name="policy-1", argv=(sys.executable, "-m", "benchmarks.scripted_policy", str(run_folder.path))
        )
        roles.supervisor.start(policy)
        roles.start(Role.BROWSER)
        # The feeder's key may read what the workers say of themselves, and admit.
        async with join(run_folder, config, role="feeder", name="benchmark") as bus:
            path = WholePath(bus, subjects_of(config), config, (), site)
            await _wait_ready(path)
            path.pids = _pids(roles)
            yield path


async def _wait_ready(path: WholePath) -> None:
    with anyio.fail_after(_READY_S):
        while True:
            records = await path.bus.history(path.subjects.heartbeats, path.subjects.everything("heartbeat"))
            beats = [record.message for record in records if isinstance(record.message, Heartbeat)]
            if {Role.BROWSER, Role.POLICY} <= {beat.role for beat in beats if beat.state in ("waiting", "working")}:
                return
            await anyio.sleep(0.2)


def _pids(roles: LocalRoles) -> tuple[int, ...]:
    pids = (roles.supervisor.pid(name) for name in ("server-1", "browser-1", "policy-1"))
    return tuple(pid for pid in pids if pid is not None)


def seconds_by_phase(trajectories: list[Trajectory]) -> dict[str, float]:
    """Mean seconds: of an episode's start, and a step's action, look and wait for the policy."""
    steps = sum(trajectory.num_steps for trajectory in trajectories)
    timings = [trajectory.timings for trajectory in trajectories]
    return {
        "reset": sum(timing.reset_s for timing in timings) / len(timings),
        "act": sum(timing.act_s for timing in timings) / steps,
        "observe": sum(timing.observe_s for timing in timings) / steps,
        "policy": sum(timing.policy_s for timing in timings) / steps,
    }
