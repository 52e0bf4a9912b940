"""One training run on a real nats-server: judged episodes in a fixed order, and a real trainer process that may be killed.

The judgements are held back until the trainer has published what they come after, so that there is a time in which it waits.
Those of the last version are held back until every kill is done, so that no trainer is done before it was seen.
"""

import os
import random
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
import torch

from bus.ports import Bus
from ops.config.loading import load_config
from ops.run.folder import RunFolder
from ops.run.joining import join
from ops.run.served import served
from schemas.config import Config
from schemas.ids import EpisodeId, GroupId
from schemas.messages import Checkpoint, Task, Trajectory
from tests import builders
from tests.support.drills.trainer_moments import Log, Moment, Phase, folders, writes
from tests.support.drills.trainer_process import start_trainer
from tests.support.training.trainer_world import SUBJECTS, PlainModel, judge, play, train_task
from trainer.model.model_folder import suppressed_tokens
from trainer.versions.announcements import Announcements

BATCH = 6
_NAME = "trainer-1"
_HELD_BACK_S = 0.3
_STANDSTILL_S = 5.0
"""An objective that waits for further judgements gets a batch more after so long."""
MOST_MISSES = 3
_LOOK_S, _LOOK_RARELY_S = 0.001, 0.02
_BRIEFLY_BEFORE = (Phase.TRAINING, Phase.SAVING, Phase.WRITTEN)
_REWARDS = (1.0, 0.0, 1.0, 1.0, None, 1.0, 0.0, 1.0)


@dataclass(frozen=True)
class Kill:
    phase: Phase
    """In which it happened."""
    version: int
    """The newest announced one."""
    alive_s: float
    num_misses: int
    """Times at which the process was stopped for the wanted moment, and was past it."""


@dataclass(frozen=True)
class Wanted:
    """When a trainer is to be killed."""

    phase: Phase
    num_published: int
    """Versions that it may publish before."""
    share: float
    """How far into the phase, 0 to 1."""

    @classmethod
    def drawn(cls, num_kills: int, seed: int) -> list["Wanted"]:
        """As many of each phase, in random order; a trainer is not killed while loading before one has loaded."""
        random_ = random.Random(seed)
        phases = [list(Phase)[index % len(Phase)] for index in range(num_kills)]
        random_.shuffle(phases)
        first = next(index for index, phase in enumerate(phases) if phase is not Phase.LOADING)
        phases[0], phases[first] = phases[first], phases[0]
        return [cls(phase, random_.randrange(2), random_.random()) for phase in phases]


@dataclass
class Drill:
    """A run in `folder`; had from `opened`."""

    folder: RunFolder
    config: Config
    bus: Bus
    trajectories: Sequence[Trajectory]
    announced: int = 0
    kills: list[Kill] = field(default_factory=list)
    num_starts: int = 0
    loading_s: float = 5.0
    training_s: float = 1.0
    _process: BaseProcess | None = None
    _log: Log | None = None
    _held: bool = False
    """Whether no further judgements are given, so that the trainer comes to wait."""
    _num_to_come: int = 0
    """Kills."""
    _exhausted: bool = False
    """Whether the trainer has nothing more to do before the next kill."""
    _before: frozenset[int] = frozenset()
    """Checkpoints that stood there when the process was started."""

    async def run(self, wanted: Sequence[Wanted], *, limit_s: float) -> list[Checkpoint]:
        """Kills a trainer at each wanted moment and starts the next one, until all versions are published.

        Raises:
            TimeoutError: they were not within `limit_s`.
        """
        self._num_to_come = len(wanted)
        try:
            with anyio.fail_after(limit_s):
                async with anyio.create_task_group() as group:
                    group.start_soon(self._follow)
                    group.start_soon(self._judge)
                    for moment in wanted:
                        await self._kill(moment)
                        self._num_to_come -= 1
                    await self._finish()
                    group.cancel_scope.cancel()
        finally:
            if self._process is not None:
                self._process.kill()
                self._process.join()
        records = await self.bus.history(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"))
        return [record.message for record in records if isinstance(record.message, Checkpoint)]

    async def _follow(self) -> None:
        async with self.bus.tail(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint")) as records:
            async for record in records:
                assert isinstance(record.message, Checkpoint)
                self.announced = record.message.version

    async def _judge(self) -> None:
        """A batch for each version that is announced, a little later."""
        given, last, since = 0, -1, time.monotonic()
        while given < len(self.trajectories):
            await anyio.sleep(_HELD_BACK_S)
            if self._held:
                continue
            if self._log is None or not self._log.waits:
                since = time.monotonic()
            stands_still = time.monotonic() - since > _STANDSTILL_S
            if given >= self._num_to_give:
                self._exhausted = stands_still
            elif self.announced != last or stands_still:
                last, since = self.announced, time.monotonic()
                for index in range(given, min(given + BATCH, len(self.trajectories))):
                    await judge(self.bus, self.trajectories[index], _REWARDS[index % len(_REWARDS)])
                given += BATCH

    @property
    def _num_to_give(self) -> int:
        return (self._last - 1) * BATCH if self._num_to_come else len(self.trajectories)

    def _start(self) -> tuple[BaseProcess, Log]:
        self._exhausted = False
        self._log = log = Log(self.folder.logs / f"{_NAME}.log")
        self._before = frozenset(folders(self.folder.checkpoints))
        self.num_starts += 1
        self._process = start_trainer(self.folder.path, _NAME)
        return self._process, log

    async def _kill(self, wanted: Wanted) -> None:
        process, log = self._start()
        began, misses, pid = time.monotonic(), 0, process.pid
        assert pid is not None
        self._held = wanted.phase is Phase.WAITING
        if wanted.phase is Phase.LOADING:
            await anyio.sleep(wanted.share * 0.7 * self.loading_s)
        while True:
            await self._until(process, log, wanted, began)
            try:
                os.kill(pid, signal.SIGSTOP)
            except ProcessLookupError as error:
                raise self._ended(process) from error
            moment = await self._moment(process, log)
            if moment.phase is wanted.phase or misses == MOST_MISSES or self._exhausted:
                break
            misses += 1
            os.kill(pid, signal.SIGCONT)
        process.kill()
        process.join()
        self._held = False
        moment = await self._moment(process, log)
        self.kills.append(Kill(moment.phase, moment.newest_announced, round(time.monotonic() - began, 2), misses))

    @property
    def _last(self) -> int:
        return self.config.feeder_config.num_iterations

    async def _moment(self, process: BaseProcess, log: Log) -> Moment:
        newest = await Announcements(self.bus, SUBJECTS).newest()
        return self._seen(process, log, newest.version if newest else 0)

    def _seen(self, process: BaseProcess, log: Log, announced: int) -> Moment:
        found = folders(self.folder.checkpoints)
        written = max((version for inode, version in found.items() if inode not in self._before), default=0)
        return Moment(log.read(), writes(self.folder.checkpoints, process.pid or 0), written, announced)

    def _ended(self, process: BaseProcess) -> ChildProcessError:
        log = (self.folder.logs / f"{_NAME}.log").read_text(errors="replace")
        return ChildProcessError(f"the trainer ended by itself with {process.exitcode}:\n{log[-3000:]}")

    async def _until(self, process: BaseProcess, log: Log, wanted: Wanted, began: float) -> None:
        """Returns in the wanted phase, or when there will be no later one."""
        loaded = False
        while True:
            if process.exitcode is not None:
                raise self._ended(process)
            moment = self._seen(process, log, self.announced)
            if not loaded and moment.phase is not Phase.LOADING:
                loaded, self.loading_s = True, time.monotonic() - began
            soon = self._held or moment.num_published >= wanted.num_published or moment.newest_announced >= self._last - 2
            if wanted.phase is Phase.LOADING or (soon and moment.phase is wanted.phase) or self._exhausted:
                break
            await anyio.sleep(_LOOK_S if soon and moment.phase in _BRIEFLY_BEFORE else _LOOK_RARELY_S)
        match wanted.phase:
            case Phase.WAITING:
                await anyio.sleep(wanted.share * 0.5 * _HELD_BACK_S)
            case Phase.TRAINING:
                await anyio.sleep(wanted.share * self.training_s)

    async def _finish(self) -> None:
        process, _ = self._start()
        await anyio.to_thread.run_sync(process.join, abandon_on_cancel=True)
        if process.exitcode != 0:
            raise ChildProcessError(f"the trainer ended with exit code {process.exitcode}: see {self.folder.logs}")


def drill_config(folder: Path, base: Path, *, objective: str, num_versions: int) -> Config:
    compares = load_config("update_online", [f"objective={objective}"]).objective_config.group_size > 1
    return load_config(
        "update_online",
        [
            f"objective={objective}",
            *([f"objective_config.group_size={BATCH // 2}"] if compares else []),
            f"save_path={folder}",
            f"policy_config.base_model={base}",
            "policy_config.top_k=-1",
            "policy_config.top_p=1.0",
            "policy_config.dtype=float32",
            f"bus_config.run={builders.RUN}",
            f"bus_config.rubrics=[{builders.RUBRIC}]",
            f"env_config.train_tasks_rollout_size={BATCH}",
            f"feeder_config.num_iterations={num_versions}",
            f"feeder_config.max_staleness={num_versions}",
            "trainer_config.torch_threads=1",
            "trainer_config.keep_checkpoints=2",
            "algorithm_config.per_device_train_batch_size=4",
            "algorithm_config.gradient_accumulation_steps=1",
            "algorithm_config.learning_rate=1e-3",
            "algorithm_config.warmup_steps=2",
            "algorithm_config.report_to=none",
            "algorithm_config.num_train_epochs=2",
            "algorithm_config.deepspeed_config_filename=ds_config_cpu_zero1.json",
        ],
    )


@asynccontextmanager
async def opened(folder: Path, base: Path, *, objective: str, num_versions: int) -> AsyncIterator[Drill]:
    """A new run whose episodes are played, and judged while it trains."""
    run = RunFolder(folder)
    config = drill_config(folder, base, objective=objective, num_versions=num_versions)
    run.create(config)
    async with served(run, config), join(run, config, role="admin", name="drill") as bus:
        await Announcements(bus, SUBJECTS).announce_base(base)
        torch.set_num_threads(1)
        plain, suppressed = PlainModel(base), suppressed_tokens(base)
        trajectories = []
        for index in range((num_versions + 2) * BATCH):
            task = _grouped(index, config.objective_config.group_size)
            trajectories.append(await play(bus, task, plain=plain, suppressed=suppressed, prompt=plain.prompt()))
        yield Drill(run, config, bus, trajectories)


def _grouped(index: int, group_size: int) -> Task:
    """Members of a group one behind the other, the first of a group the last of a batch: it is carried over."""
    number, member = divmod(index + 1, group_size)
    group = GroupId(f"train-r0000-t{number}")
    return msgspec.structs.replace(train_task(index), group=group, episode=EpisodeId(f"{group}-m{member}"))
