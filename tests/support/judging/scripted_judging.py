"""A run whose judges ask a scripted endpoint: its trajectories, written straight onto the bus, and what the endpoint says."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from msgspec import structs

from bus.jetstream import connect, create_topology
from bus.ports import Bus
from bus.server import nats_server
from bus.subjects import Subjects
from bus.topology import shared_queues, streams
from ops.config.loading import load_config
from ops.run.folder import RunFolder
from schemas.ids import EpisodeId, RunName
from schemas.messages import JudgeCall, Judgement, Outcome, Trajectory
from tests.builders import observation, step_request, task, trajectory
from tests.support.judging.endpoint_replies import Said, verdict
from tests.support.judging.endpoint_requests import Asked

SUBJECTS = Subjects(RunName("judged"))
RUBRIC = "rubric_v1"


def passes(number: int) -> bool:
    """What the endpoint holds of an episode."""
    return number % 2 == 0


def say(asked: Asked) -> Said:
    """The verdict on the episode that a question is about: nothing blocked it, and every screenshot is evidence."""
    found = re.search(r"item number (\d+)", asked.text)
    assert found is not None, asked.text
    schema = asked.body["response_format"]["json_schema"]["name"]
    criterion = "SUCCESS" if passes(int(found[1])) else "FAILURE"
    words = {"criterion_verdict": criterion, "blocking_verdict": "NOT_BLOCKED", "keypoint_verdict": "NEEDED"}
    return verdict(reasoning="as the test has it", verdict=words[schema])


def played(number: int) -> Trajectory:
    """An episode of two to four screenshots."""
    of = task(f"t{number}", max_steps=4)
    instruction = f"Find item number {number} and say where it is."
    of = structs.replace(of, run=SUBJECTS.run, instruction=instruction, website="https://shop.example/", max_steps=4)
    num_steps = (2, 2, 2, 3, 4)[number % 5]
    ended = trajectory(of, outcome=Outcome.ANSWERED, reward=None, num_observations=num_steps, num_steps=num_steps)
    return structs.replace(ended, answer=f"on shelf {number}")


async def _write(bus: Bus, of: Trajectory) -> None:
    """The chain as far as a judge reads it, then the trajectory."""
    stream = SUBJECTS.episodes(0)
    for step in range(of.num_steps):
        seen = observation(of.task, step, data=b"screenshot %d of %s" % (step, of.episode.encode()))
        await bus.append(stream, SUBJECTS.chain_record(of.episode, 1, "obs", step), seen)
        await bus.append(stream, SUBJECTS.chain_record(of.episode, 1, "act", step), step_request(of.task, step))
    await bus.append(SUBJECTS.trajectories, SUBJECTS.trajectory(of.task.split, of.episode), of)


async def write_all(bus: Bus, num_trajectories: int, num_writers: int = 40) -> None:
    numbers = iter(range(num_trajectories))

    async def write_some() -> None:
        for number in numbers:
            await _write(bus, played(number))

    async with anyio.create_task_group() as group:
        for _ in range(num_writers):
            group.start_soon(write_some)


@asynccontextmanager
async def judging_run(path: Path, base_url: str, *overrides: str) -> AsyncIterator[tuple[RunFolder, Bus]]:
    """The run with its server, and the administrator's bus."""
    folder = RunFolder(path)
    given = (f"bus_config.run={SUBJECTS.run}", f"judge_config.judge={RUBRIC}", f"openai_config.base_url={base_url}")
    config = load_config("default", [*given, *overrides])
    folder.create(config, needed_bytes=0)
    bus_config = config.bus_config
    async with (
        nats_server(folder.server, [bus_config]) as address,
        connect(address, SUBJECTS, bus_config, name="test") as bus,
    ):
        await create_topology(bus, streams(SUBJECTS, bus_config), shared_queues(SUBJECTS, bus_config, bus_config.rubrics))
        yield folder, bus


async def judgements(bus: Bus, num_episodes: int) -> dict[EpisodeId, Judgement]:
    """As soon as there are so many."""
    found: dict[EpisodeId, Judgement] = {}
    async with bus.tail(SUBJECTS.judged, SUBJECTS.judgements(None)) as records:
        while len(found) < num_episodes:
            record = await anext(records)
            assert isinstance(record.message, Judgement)
            found[record.message.episode] = record.message
    return found


async def calls(bus: Bus) -> list[JudgeCall]:
    """Everything that models answered."""
    records = await bus.history(SUBJECTS.calls, SUBJECTS.everything("call"))
    return [record.message for record in records if isinstance(record.message, JudgeCall)]
