"""A run with ended episodes, some of them judged by the rubric that it is trained by; its server is down on return."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from bus.ports import Bus
from bus.subjects import Subjects
from ops.archive.stream_source import StreamSource
from ops.config.loading import load_config
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.served import served
from schemas.bus_config import BusConfig
from schemas.ids import RunName
from schemas.messages import Judgement, Outcome, Trajectory
from tests.builders import judgement, task
from tests.support.bus.played import play

OLD = "environment_v1"
AGAIN = "environment_v1-again"
RELABELLED = "judge_config.label=again"


@asynccontextmanager
async def opened(run: RunFolder) -> AsyncIterator[tuple[Bus, Subjects]]:
    config = run.load()
    async with served(run, config), join(run, config, role="admin", name="test") as bus:
        yield bus, subjects_of(config)


async def judged_run(path: Path, *, num_episodes: int = 6) -> tuple[RunFolder, tuple[Trajectory, ...]]:
    """Every third episode fails; rewards alternate. Episode 1 was judged wrongly, episode 2 not at all."""
    run = RunFolder(path)
    run.create(replace(load_config("default"), bus_config=BusConfig(run=RunName("test"))), needed_bytes=0)
    ended = []
    async with opened(run) as (bus, subjects):
        for index in range(num_episodes):
            outcome, reward = (Outcome.FAILED, None) if index % 3 == 2 else (Outcome.ANSWERED, float(index % 2 == 0))
            trajectory = await play(
                bus, task(f"t{index}", index=index), subjects=subjects, num_steps=2, outcome=outcome, reward=reward
            )
            ended.append(trajectory)
            if index != 2:
                given = judgement(trajectory, 1.0 if index == 1 else reward)
                await put(bus, subjects, msgspec.structs.replace(given, rubric=OLD))
    return run, tuple(ended)


async def put(bus: Bus, subjects: Subjects, given: Judgement) -> None:
    await bus.append(subjects.judged, subjects.judgement(given.split, given.rubric, given.episode), given)


async def stored(bus: Bus, subjects: Subjects, rubric: str) -> dict[str, bytes]:
    """Judgements by one rubric, byte for byte, by episode."""
    return {one.episode: one.data async for one in StreamSource(bus, subjects).judgements() if one.rubric == rubric}


def verdicts(judgements: dict[str, bytes]) -> Sequence[str]:
    """In the order of the episodes' names."""
    return [msgspec.msgpack.decode(data)["verdict"] for _, data in sorted(judgements.items())]
