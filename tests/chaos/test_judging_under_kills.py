"""1,000 trajectories through two judge workers that are killed again and again, against an endpoint that fails one call in
five: each is judged once and as the endpoint said, and no question is asked again but for a failure or a kill.
"""

import random
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

from ops.processes.role_process import millrace_environment
from ops.run.folder import RunFolder
from schemas.messages import Verdict
from tests.deadlines import HANGS_S
from tests.support.judging.endpoint_replies import RESET, Reply, failed, rate_limited, says, truncated
from tests.support.judging.endpoint_requests import Asked
from tests.support.judging.scripted_endpoint import ScriptedEndpoint, scripted_endpoint
from tests.support.judging.scripted_judging import SUBJECTS, calls, judgements, judging_run, passes, played, say, write_all

pytestmark = [pytest.mark.anyio, pytest.mark.integration, pytest.mark.timeout(1800)]
NUM_TRAJECTORIES = 500
NUM_AT_ONCE = 12
"""Trajectories, and calls, that one worker has under way: what a kill can lose."""
KILLED_AT = range(250, 1501, 250)
"""Requests that have arrived at the endpoint when a worker is killed, the one and the other in turn."""
FAILURE_SHARE = 0.2
WITHOUT_ANSWER: tuple[Reply, ...] = (failed(500), rate_limited("0.05"), RESET)
WITHOUT_VERDICT: tuple[Reply, ...] = (says("FAILURE? SUCCESS!"), truncated('{"reasoning": "the screenshot sh'))


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
        return say(asked)


@asynccontextmanager
async def judge_process(folder: RunFolder, name: str) -> AsyncIterator[anyio.abc.Process]:
    command = (sys.executable, "-m", "tests.support.judging.judge_process", str(folder.path), name)
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


async def test_each_trajectory_is_judged_once_and_no_question_is_asked_in_vain(tmp_path: Path) -> None:
    oracle = Oracle()
    async with (
        scripted_endpoint(oracle.reply) as endpoint,
        judging_run(
            tmp_path / "run",
            endpoint.base_url,
            f"env_config.evaluation_workers={NUM_AT_ONCE}",
            f"openai_config.max_concurrent={NUM_AT_ONCE}",
            "openai_config.max_answers=9",
        ) as (folder, bus),
    ):
        await write_all(bus, NUM_TRAJECTORIES)
        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                group.start_soon(kill_in_turn, folder, endpoint, ("judge-1", "judge-2"))
                judged = await judgements(bus, NUM_TRAJECTORIES)
                group.cancel_scope.cancel()
        counts = await bus.subjects(SUBJECTS.judged, SUBJECTS.judgements(None))
        recorded = await calls(bus)

    assert len(endpoint.requests) > KILLED_AT[-1], "every kill has to fall into the judging"
    assert len(counts) == NUM_TRAJECTORIES
    assert set(counts.values()) == {1}
    expected = {played(number).episode: passes(number) for number in range(NUM_TRAJECTORIES)}
    assert {name: (given.verdict, given.reward) for name, given in judged.items()} == {
        name: (Verdict.SUCCESS, 1.0) if passed else (Verdict.FAILURE, 0.0) for name, passed in expected.items()
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
    told = sum(usage.num_calls for judgement in judged.values() for usage in judgement.usage)
    assert told == len(recorded)
