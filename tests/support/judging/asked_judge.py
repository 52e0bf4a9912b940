"""A judge that is asked as in a run: on a real server, composed from a configuration, by its worker."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import msgspec

from bus import chain
from bus.background import background
from bus.context import WorkerContext
from bus.evidence import Evidence
from bus.jetstream import connect, create_topology
from bus.memory import MemoryBus
from bus.ports import Bus
from bus.presence import Status
from bus.server import nats_server
from bus.subjects import Subjects
from bus.topology import shared_queues, streams
from judges.episode import JudgedEpisode
from judges.judge import Judge, Ruling
from judges.worker import JudgeWorker
from ops.roles.judge import open_judge
from ops.run.folder import RunFolder
from ops.run.joining import RoleRun
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.ids import WorkerId
from schemas.messages import Fact, JudgeCall, Judgement, Outcome, Role, Screenshot, Task, Trajectory
from tests.builders import RUN, WORKER, observation, step_request, task
from tests.deadlines import HANGS_S
from tests.support.judging.endpoint_replies import Reply, verdict
from tests.support.judging.endpoint_requests import Asked

SUBJECTS = Subjects(RUN)
ANSWER = "The mug costs 12 euro."
FACT = Fact("the price of the blue mug is shown", difficulty=2, group="the mug")


def question(name: str, *, facts: Sequence[Fact] = (FACT,), reference: str | None = "12 euro") -> Task:
    """A task that is answered in words; its name is part of its instruction."""
    return msgspec.structs.replace(
        task(name, max_steps=5),
        instruction=f"What does the blue mug cost? ({name})",
        website="https://www.shop.example/",
        facts=tuple(facts),
        reference_answer=reference,
    )


async def answered(
    bus: Bus, of: Task, *, num_steps: int = 2, answer: str = ANSWER, screenshots: Sequence[Screenshot] = ()
) -> Trajectory:
    """Plays an episode to its answer. Without screenshots, no two are equal, and none is one."""
    of = msgspec.structs.replace(of, max_steps=max(of.max_steps, num_steps))
    await chain.admit(bus, SUBJECTS, of)
    owner = await chain.EpisodeChain.take(bus, SUBJECTS, of, WORKER)
    assert isinstance(owner, chain.EpisodeChain)
    for step in range(num_steps):
        observed = observation(of, step, data=b"%s %d" % (of.task.encode(), step))
        if screenshots:
            observed = msgspec.structs.replace(observed, screenshot=screenshots[step])
        seen = await owner.observe(observed)
        owner.answered(await chain.answer(bus, SUBJECTS, seen, step_request(of, step)))
    ended = Trajectory(
        task=of,
        attempt=1,
        outcome=Outcome.ANSWERED,
        num_observations=num_steps,
        num_steps=num_steps,
        answer=answer,
        worker=WORKER,
    )
    await owner.finish(ended)
    await chain.publish_trajectory(bus, SUBJECTS, ended)
    return ended


def kind_of(asked: Asked) -> str:
    """`blocking_detection`, `keypoint_detection` or `evaluation`: by the words that the question offers."""
    if "NOT_BLOCKED" in asked.text:
        return "blocking_detection"
    return "keypoint_detection" if "NOT_NEEDED" in asked.text else "evaluation"


def hoped_for(asked: Asked) -> Reply:
    """The verdict with which everything holds."""
    word = {"blocking_detection": "NOT_BLOCKED", "keypoint_detection": "NEEDED", "evaluation": "SUCCESS"}[kind_of(asked)]
    return verdict(reasoning="it is so", verdict=word)


async def ruled(config: Config, folder: Path, *, num_steps: int = 2, name: str = "t1") -> tuple[Ruling, list[JudgeCall]]:
    """What the configured judge says about one answered episode, and the answers that it had."""
    bus = MemoryBus(SUBJECTS)
    trajectory = await answered(bus, question(name), num_steps=num_steps)
    with anyio.fail_after(HANGS_S):
        async with open_judge(role_run_of(bus, config, folder)) as judge:
            ruling = await judge.judge(JudgedEpisode(trajectory, Evidence(bus, SUBJECTS)))
    return ruling, await calls(bus)


def for_test(config: Config) -> Config:
    """As part of the tests' run, whose only rubric is the configured one."""
    bus = replace(config.bus_config, run=RUN, rubrics=(config.judge_config.rubric,))
    return replace(config, bus_config=bus)


@asynccontextmanager
async def run_for(folder: Path, *rubrics: str) -> AsyncIterator[Bus]:
    """A bus with the streams of the tests' run, and queues for these rubrics."""
    config = BusConfig(run=RUN)
    async with nats_server(folder) as address, connect(address, SUBJECTS, config, name="test") as bus:
        await create_topology(bus, streams(SUBJECTS, config), shared_queues(SUBJECTS, config, rubrics))
        yield bus


def role_run_of(bus: Bus, config: Config, folder: Path, worker: str = "judge-1") -> RoleRun:
    name = WorkerId(worker)
    return RoleRun(RunFolder(folder), for_test(config), WorkerContext(bus, SUBJECTS, Status(Role.JUDGE, name)))


def worker_of(run: RoleRun, judge: Judge) -> JudgeWorker:
    return JudgeWorker(run.context, run.config, judge=judge)


@asynccontextmanager
async def judging(bus: Bus, config: Config, folder: Path) -> AsyncIterator[RoleRun]:
    """The configured judge and its worker, at work."""
    run = role_run_of(bus, config, folder)
    async with open_judge(run) as judge, background(worker_of(run, judge).run):
        yield run


async def judgements(bus: Bus, number: int, *, within_s: float = HANGS_S) -> dict[str, Judgement]:
    """By the task's name, when there are so many."""
    found: dict[str, Judgement] = {}
    with anyio.fail_after(within_s):
        async with bus.tail(SUBJECTS.judged, SUBJECTS.judgements(None)) as records:
            while len(found) < number:
                record = await anext(records)
                assert isinstance(record.message, Judgement)
                found[record.message.trajectory.task.task] = record.message
    return found


async def calls(bus: Bus) -> list[JudgeCall]:
    """All that stand on CALLS, oldest first."""
    records = await bus.history(SUBJECTS.calls, SUBJECTS.everything("call"))
    return [record.message for record in records if isinstance(record.message, JudgeCall)]
