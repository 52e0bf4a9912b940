"""The judge worker: one judgement a trajectory, and never a reward where there was no verdict."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
import pytest

from bus.chain import publish_trajectory
from bus.memory import MemoryBus
from bus.ports import Inbox, WorkQueue
from bus.presence import Status
from bus.subjects import Subjects
from judges.episode import JudgedEpisode
from judges.judge import Judge, Ruling
from judges.programmatic.environment import EnvironmentJudge
from judges.worker import JudgeWorker
from schemas.config import BusConfig, EnvConfig, JudgeConfig
from schemas.errors import JudgeError
from schemas.ids import WorkerId
from schemas.messages import Judgement, Outcome, Role, StageVerdict, Verdict
from tests.builders import RUN, WORKER, task, trajectory

pytestmark = pytest.mark.anyio
SUBJECTS = Subjects(RUN)


class FailingJudge:
    """Fails a given number of times, then finds success."""

    name = "failing_v1"

    def __init__(self, num_failures: int) -> None:
        self.num_failures = num_failures
        self.num_calls = 0

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        self.num_calls += 1
        if self.num_calls <= self.num_failures:
            raise JudgeError("the endpoint is away")
        return Ruling(verdict=Verdict.SUCCESS, reward=1.0)


RUBRICS = (EnvironmentJudge.name, FailingJudge.name)


@asynccontextmanager
async def judging(bus: MemoryBus, judge: Judge, *, max_attempts: int = 2) -> AsyncIterator[None]:
    worker = JudgeWorker(
        bus=bus,
        subjects=SUBJECTS,
        worker=WorkerId("judge-1"),
        status=Status(Role.JUDGE, WORKER),
        bus_config=BusConfig(),
        env_config=EnvConfig(),
        judge_config=JudgeConfig(judge=judge.name, max_attempts=max_attempts),
        judge=judge,
    )
    async with anyio.create_task_group() as group:
        group.start_soon(worker.run)
        yield
        group.cancel_scope.cancel()


async def first_judgement(bus: MemoryBus) -> Judgement:
    with anyio.fail_after(10):
        async with bus.tail(SUBJECTS.judged, SUBJECTS.judgements(None)) as records:
            record = await anext(records)
    assert isinstance(record.message, Judgement)
    return record.message


@pytest.mark.parametrize(
    ("outcome", "reward", "verdict", "judged_reward"),
    [
        (Outcome.DONE, 1.0, Verdict.SUCCESS, 1.0),
        (Outcome.DONE, 0.0, Verdict.FAILURE, 0.0),
        (Outcome.DONE, 0.4, Verdict.FAILURE, 0.4),
        (Outcome.STEP_LIMIT, 0.0, Verdict.FAILURE, 0.0),
        (Outcome.FAILED, None, Verdict.EXCLUDED, None),
        (Outcome.CANCELLED, 1.0, Verdict.EXCLUDED, None),
    ],
)
async def test_rulings(outcome: Outcome, reward: float | None, verdict: Verdict, judged_reward: float | None) -> None:
    bus = MemoryBus(SUBJECTS, BusConfig(), RUBRICS)
    async with judging(bus, EnvironmentJudge()):
        await publish_trajectory(bus, SUBJECTS, trajectory(task(), outcome=outcome, reward=reward))
        judgement = await first_judgement(bus)
    assert (judgement.verdict, judgement.reward) == (verdict, judged_reward)


async def test_a_judge_error_is_retried_then_succeeds() -> None:
    bus, judge = MemoryBus(SUBJECTS, BusConfig(), RUBRICS), FailingJudge(num_failures=1)
    async with judging(bus, judge):
        await publish_trajectory(bus, SUBJECTS, trajectory(task()))
        assert (await first_judgement(bus)).verdict is Verdict.SUCCESS
    assert judge.num_calls == 2


async def test_a_judge_that_never_answers_gives_an_error_without_a_reward() -> None:
    bus, judge = MemoryBus(SUBJECTS, BusConfig(), RUBRICS), FailingJudge(num_failures=99)
    async with judging(bus, judge, max_attempts=2):
        await publish_trajectory(bus, SUBJECTS, trajectory(task()))
        judgement = await first_judgement(bus)
    assert (judgement.verdict, judgement.reward, judge.num_calls) == (Verdict.ERROR, None, 2)


async def test_two_workers_judge_once() -> None:
    bus = MemoryBus(SUBJECTS, BusConfig(), RUBRICS)
    names = [f"t{number}" for number in range(30)]
    async with judging(bus, EnvironmentJudge()), judging(bus, EnvironmentJudge()):
        for name in names:
            await publish_trajectory(bus, SUBJECTS, trajectory(task(name)))
        async with bus.tail(SUBJECTS.judged, SUBJECTS.judgements(None)) as records:
            with anyio.fail_after(10):
                for _ in names:
                    await anext(records)
    counts = await bus.subjects(SUBJECTS.judged, SUBJECTS.judgements(None))
    assert len(counts) == len(names)
    assert set(counts.values()) == {1}


class VerboseJudge:
    """Says more than a message holds."""

    name = "verbose_v1"

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        return Ruling(verdict=Verdict.SUCCESS, reward=1.0, stages=(StageVerdict("reasoning", True, "because " * 20_000),))


async def test_a_judgement_that_no_message_holds_is_an_error_without_a_reward() -> None:
    bus = MemoryBus(SUBJECTS, BusConfig(max_payload_bytes=100_000), (VerboseJudge.name,))
    async with judging(bus, VerboseJudge()):
        await publish_trajectory(bus, SUBJECTS, trajectory(task()))
        judgement = await first_judgement(bus)
    assert (judgement.verdict, judgement.reward) == (Verdict.ERROR, None)
    assert "exceed" in judgement.error


async def test_nothing_waits_unbegun_at_a_busy_judge() -> None:
    bus, judge = MemoryBus(SUBJECTS, BusConfig(), RUBRICS), FailingJudge(num_failures=0)
    prefetched = list[int]()
    work = bus.work

    def noted(queue: WorkQueue, *, prefetch: int) -> AbstractAsyncContextManager[Inbox]:
        prefetched.append(prefetch)
        return work(queue, prefetch=prefetch)

    bus.work = noted  # type: ignore[method-assign]
    async with judging(bus, judge):
        await publish_trajectory(bus, SUBJECTS, trajectory(task()))
        await first_judgement(bus)
    assert prefetched == [0]
