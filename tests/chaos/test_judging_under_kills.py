"""1,000 trajectories through two judge workers that are killed again and again, against an endpoint that fails one call in
five: each is judged once and as the endpoint said, and no question is asked again but for a failure or a kill.
"""

import random
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL

import anyio
import anyio.abc
import pytest
from msgspec import structs

from bus.jetstream import connect, create_topology
from bus.ports import Bus
from bus.server import nats_server
from bus.subjects import Subjects
from bus.topology import shared_queues, streams
from ops.configuration import load_config
from ops.role_process import millrace_environment
from ops.run_folder import RunFolder
from schemas.ids import RunName
from schemas.messages import JudgeCall, Judgement, Outcome, Trajectory, Verdict
from tests.builders import observation, step_request, task, trajectory
from tests.endpoint_replies import RESET, Reply, failed, rate_limited, says, truncated, verdict
from tests.endpoint_requests import Asked
from tests.scripted_endpoint import ScriptedEndpoint, scripted_endpoint

pytestmark = [pytest.mark.anyio, pytest.mark.integration, pytest.mark.timeout(600)]
SUBJECTS = Subjects(RunName("killed"))
RUBRIC = "rubric_v1"
NUM_TRAJECTORIES = 1000
NUM_AT_ONCE = 12
"""Trajectories, and calls, that one worker has under way: what a kill can lose."""
KILLED_AT = range(500, 3001, 500)
"""Requests that have arrived at the endpoint when a worker is killed, the one and the other in turn."""
FAILURE_SHARE = 0.2
WITHOUT_ANSWER: tuple[Reply, ...] = (failed(500), rate_limited("0.05"), RESET)
WITHOUT_VERDICT: tuple[Reply, ...] = (says("FAILURE? SUCCESS!"), truncated('{"reasoning": "the picture sh'))


@dataclass
class Oracle:
    """What the endpoint says: each question's failures are drawn from its own text, whatever the order of arrival."""

    num_failures: int = 0
    num_without_verdict: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    """Requests by question."""
    answered: Counter[str] = field(default_factory=Counter)
    """Verdicts by question."""

    def reply(self, asked: Asked) -> Reply:
        question = asked.digest
        draw = random.Random(f"{question} {self.asked[question]}")
        self.asked[question] += 1
        if draw.random() < FAILURE_SHARE:
            self.num_failures += 1
            reply = draw.choice(WITHOUT_ANSWER + WITHOUT_VERDICT)
            self.num_without_verdict += reply in WITHOUT_VERDICT
            return reply
        self.answered[question] += 1
        found = re.search(r"item number (\d+)", asked.text)
        assert found is not None, asked.text
        return verdict(reasoning="as the test has it", verdict=_word(asked, passes(int(found[1]))))


def passes(number: int) -> bool:
    """What the endpoint holds of an episode."""
    return number % 2 == 0


def _word(asked: Asked, passed: bool) -> str:
    schema = asked.body["response_format"]["json_schema"]
    if schema["name"] == "criterion_verdict":
        return "SUCCESS" if passed else "FAILURE"
    return "NOT_BLOCKED" if schema["name"] == "blocking_verdict" else "NEEDED"


def played(number: int) -> Trajectory:
    """An episode of two to four pictures."""
    of = task(f"t{number}")
    instruction = f"Find item number {number} and say where it is."
    of = structs.replace(of, run=SUBJECTS.run, instruction=instruction, website="https://shop.example/")
    num_steps = (2, 2, 2, 3, 4)[number % 5]
    ended = trajectory(of, outcome=Outcome.ANSWERED, reward=None, num_observations=num_steps, num_steps=num_steps)
    return structs.replace(ended, answer=f"on shelf {number}")


async def write(bus: Bus, of: Trajectory) -> None:
    """The chain as far as a judge reads it, then the trajectory."""
    stream = SUBJECTS.episodes(0)
    for step in range(of.num_steps):
        seen = observation(of.task, step, data=b"picture %d of %s" % (step, of.episode.encode()))
        await bus.append(stream, SUBJECTS.chain_record(of.episode, 1, "obs", step), seen)
        await bus.append(stream, SUBJECTS.chain_record(of.episode, 1, "act", step), step_request(of.task, step))
    await bus.append(SUBJECTS.trajectories, SUBJECTS.trajectory(of.task.split, of.episode), of)


async def write_all(bus: Bus, num_writers: int = 40) -> None:
    numbers = iter(range(NUM_TRAJECTORIES))

    async def write_some() -> None:
        for number in numbers:
            await write(bus, played(number))

    async with anyio.create_task_group() as group:
        for _ in range(num_writers):
            group.start_soon(write_some)


@asynccontextmanager
async def run_folder(path: Path, base_url: str) -> AsyncIterator[tuple[RunFolder, Bus]]:
    """A run with its server, and the administrator's bus."""
    folder = RunFolder(path)
    config = load_config(
        "default",
        [
            f"bus_config.run={SUBJECTS.run}",
            "bus_config.judge_ack_wait_s=6",
            f"judge_config.judge={RUBRIC}",
            f"env_config.evaluation_workers={NUM_AT_ONCE}",
            f"openai_config.max_concurrent={NUM_AT_ONCE}",
            f"openai_config.base_url={base_url}",
            "openai_config.max_answers=9",
        ],
    )
    folder.create(config, needed_bytes=0)
    bus_config = config.bus_config
    async with (
        nats_server(folder.server, [bus_config]) as address,
        connect(address, SUBJECTS, bus_config, name="test") as bus,
    ):
        await create_topology(bus, streams(SUBJECTS, bus_config), shared_queues(SUBJECTS, bus_config, bus_config.rubrics))
        yield folder, bus


@asynccontextmanager
async def judge_process(folder: RunFolder, name: str) -> AsyncIterator[anyio.abc.Process]:
    command = (sys.executable, "-m", "tests.judge_process", str(folder.path), name)
    with (folder.logs / f"{name}.out").open("ab") as output:
        process = await anyio.open_process(command, env=millrace_environment(), stdin=DEVNULL, stdout=output, stderr=output)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        with anyio.move_on_after(10, shield=True):
            await process.aclose()


async def kill_in_turn(folder: RunFolder, endpoint: ScriptedEndpoint, names: tuple[str, ...]) -> None:
    """Keeps two workers running, killed at their requests and replaced at once. Runs until it is cancelled.

    Raises:
        AssertionError: one ended by itself.
    """
    async with AsyncExitStack() as stack:
        workers = {name: await stack.enter_async_context(judge_process(folder, name)) for name in names}
        for turn, num_requests in enumerate(KILLED_AT):
            await endpoint.arrived(num_requests)
            name = names[turn % len(names)]
            worker = workers[name]
            assert worker.returncode is None, _last_words(folder, name)
            worker.kill()
            await worker.wait()
            workers[name] = await stack.enter_async_context(judge_process(folder, name))
        async with anyio.create_task_group() as group:
            for name, worker in workers.items():
                group.start_soon(_fail_when_ended, worker, name, folder)


async def _fail_when_ended(worker: anyio.abc.Process, name: str, folder: RunFolder) -> None:
    await worker.wait()
    raise AssertionError(_last_words(folder, name))


def _last_words(folder: RunFolder, name: str) -> str:
    return f"{name} ended by itself: {(folder.logs / f'{name}.out').read_text()[-4000:]}"


async def judgements(bus: Bus) -> list[Judgement]:
    """As soon as there is one of every trajectory."""
    found: dict[str, Judgement] = {}
    async with bus.tail(SUBJECTS.judged, SUBJECTS.judgements(None)) as records:
        while len(found) < NUM_TRAJECTORIES:
            record = await anext(records)
            assert isinstance(record.message, Judgement)
            found[record.message.episode] = record.message
    return list(found.values())


async def calls(bus: Bus) -> list[JudgeCall]:
    records = await bus.history(SUBJECTS.calls, SUBJECTS.everything("call"))
    return [record.message for record in records if isinstance(record.message, JudgeCall)]


async def test_each_trajectory_is_judged_once_and_no_question_is_asked_in_vain(tmp_path: Path) -> None:
    oracle = Oracle()
    async with scripted_endpoint(oracle.reply) as endpoint, run_folder(tmp_path / "run", endpoint.base_url) as (folder, bus):
        await write_all(bus)
        with anyio.fail_after(500):
            async with anyio.create_task_group() as group:
                group.start_soon(kill_in_turn, folder, endpoint, ("judge-1", "judge-2"))
                judged = await judgements(bus)
                group.cancel_scope.cancel()
        counts = await bus.subjects(SUBJECTS.judged, SUBJECTS.judgements(None))
        recorded = await calls(bus)

    assert len(endpoint.requests) > KILLED_AT[-1], "every kill has to fall into the judging"
    assert len(counts) == NUM_TRAJECTORIES
    assert set(counts.values()) == {1}
    expected = {played(number).episode: passes(number) for number in range(NUM_TRAJECTORIES)}
    said = {judgement.episode: judgement.verdict for judgement in judged}
    assert said == {name: Verdict.SUCCESS if passed else Verdict.FAILURE for name, passed in expected.items()}
    assert {name: judgement.reward for judgement in judged for name in [judgement.episode]} == {
        name: float(passed) for name, passed in expected.items()
    }

    most_lost = len(KILLED_AT) * NUM_AT_ONCE
    num_repeats = oracle.answered.total() - len(oracle.asked)
    num_lost = oracle.num_without_verdict - sum(not call.accepted for call in recorded)
    print(
        f"{len(endpoint.requests)} requests = {len(oracle.asked)} questions + {oracle.num_failures} failures + "
        f"{num_repeats} repeats; {len(KILLED_AT)} kills; {num_lost} answers without a verdict were lost"
    )
    assert oracle.num_failures > 0.1 * len(endpoint.requests)
    assert oracle.answered.keys() == oracle.asked.keys()
    assert len(endpoint.requests) == len(oracle.asked) + oracle.num_failures + num_repeats
    assert 0 <= num_repeats <= most_lost
    assert 0 <= num_lost <= most_lost - num_repeats
    accepted = Counter((call.episode, call.question) for call in recorded if call.accepted)
    assert len(accepted) == len(oracle.asked)
    assert set(accepted.values()) == {1}
    told = sum(usage.num_calls for judgement in judged for usage in judgement.usage)
    assert told == len(recorded)
