"""A server that hangs for longer than any read of it waits: who follows a run waits, and goes on when it answers again."""

import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import cast

import psutil
import pytest
from structlog.testing import capture_logs

from bus.background import background
from bus.jetstream import connect, create_topology
from bus.ports import Bus
from bus.server import nats_server
from bus.topology import streams
from ops.monitor.run_watch import watching
from ops.monitor.watch import monitoring
from ops.web.index import EpisodeIndex
from ops.web.stream_store import StreamStore
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.ids import PolicyVersion
from schemas.messages import Split, Task, Trajectory
from tests.builders import RUN, judgement, task, trajectory
from tests.contract.backends import QUEUES, RUBRIC, SUBJECTS
from tests.support.polling import until
from trainer.episodes.episode_steps import EpisodeSteps
from trainer.episodes.intake import ReadingPlace, open_intake, sized
from trainer.scores import is_success
from trainer.tracking.evaluations import Evaluations
from trainer.tracking.log import Tracking

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
CONFIG = BusConfig(run=RUN, request_timeout_s=0.2, rubrics=(RUBRIC,))
Known = Callable[[], int]
"""How many judged episodes are known."""


class Written:
    """Stands for trackers: which rounds were written."""

    def __init__(self) -> None:
        self.rounds: list[PolicyVersion] = []

    def has_evaluation(self, _: PolicyVersion) -> bool:
        return False

    def evaluated(self, version: PolicyVersion, _: dict[str, float]) -> None:
        self.rounds.append(version)


@asynccontextmanager
async def display(bus: Bus) -> AsyncIterator[Known]:
    async with watching(bus, SUBJECTS, CONFIG) as watch:
        yield lambda: watch.state.num_evaluated(PolicyVersion(0))


@asynccontextmanager
async def monitor(bus: Bus) -> AsyncIterator[Known]:
    async with monitoring(bus, SUBJECTS, Config(bus_config=CONFIG)) as watch:
        yield lambda: watch.state.run.num_evaluated(PolicyVersion(0))


@asynccontextmanager
async def evaluations(bus: Bus) -> AsyncIterator[Known]:
    written = Written()
    versions = [PolicyVersion(number) for number in range(2)]
    rounds = Evaluations(bus, SUBJECTS, cast("Tracking", written), rubric=RUBRIC, versions=versions, size=1)
    async with background(rounds.run):
        yield lambda: len(written.rounds)


@asynccontextmanager
async def intake(bus: Bus) -> AsyncIterator[Known]:
    collected: list[int] = []

    async def fetch(_: Trajectory) -> EpisodeSteps:
        return EpisodeSteps()

    async with open_intake(bus, SUBJECTS, fetch, is_success, rubric=RUBRIC, place=ReadingPlace(0), ahead=1) as opened:

        async def collect() -> None:
            await opened.batch(sized(2), collected.append)

        async with background(collect):
            yield lambda: len(collected)


@asynccontextmanager
async def viewer(bus: Bus) -> AsyncIterator[Known]:
    index = EpisodeIndex(RUBRIC)

    async def fill() -> None:
        await StreamStore(bus, SUBJECTS).fill(index)

    async with background(fill):
        yield lambda: sum(index.find(played(number).episode) is not None for number in range(2))


@contextmanager
def hanging(server: int) -> Iterator[None]:
    os.kill(server, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server, signal.SIGCONT)


def played(index: int, split: Split = Split.EVAL) -> Task:
    return task(f"t{index}", split=split, index=index)


async def judge(bus: Bus, index: int) -> None:
    for of in (played(index, split) for split in Split):
        ended = trajectory(of)
        await bus.append(SUBJECTS.trajectories, SUBJECTS.trajectory(of.split, of.episode), ended)
        ruled = judgement(ended, 1.0, rubric=RUBRIC)
        await bus.append(SUBJECTS.judged, SUBJECTS.judgement(of.split, RUBRIC, of.episode), ruled)


@pytest.mark.parametrize("follower", [display, monitor, evaluations, viewer, intake])
async def test_whoever_follows_outlasts_it(
    follower: Callable[[Bus], AbstractAsyncContextManager[Known]], tmp_path: Path
) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    async with (
        nats_server(tmp_path) as address,
        connect(address, SUBJECTS, BusConfig(run=RUN), name="other") as other,
        connect(address, SUBJECTS, CONFIG, name="follower") as bus,
    ):
        await create_topology(other, streams(SUBJECTS, CONFIG), QUEUES)
        (server,) = [
            child.pid
            for child in psutil.Process().children(recursive=True)
            if child.pid not in before and "nats-server" in child.name()
        ]
        async with follower(bus) as known:

            async def knows(number: int) -> None:
                async def holds() -> bool:
                    return known() == number

                await until(holds)

            await judge(other, 0)
            await knows(1)
            with capture_logs() as said, hanging(server):

                async def is_awaited() -> bool:
                    return any(entry["event"] == "stream_awaited" for entry in said)

                await until(is_awaited)
            await judge(other, 1)
            await knows(2)
