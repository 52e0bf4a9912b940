"""Checks, and a rubric judged by a model that reads, agree with each other and with the labels of played trajectories."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from browser_workers.suites.shop.tasks.task import Difficulty
from bus.blocklist import read_blocklist
from bus.context import WorkerContext
from bus.ports import Bus
from bus.presence import Status
from judges.endpoint.opening import open_endpoints
from judges.named.environment_v1 import EnvironmentJudge
from judges.rubric.budget import open_budget
from judges.rubric.journal import Journal
from judges.rubric.judge import RubricJudge
from judges.rubric.prompts import committed_prompts
from judges.rubric.session import RecordedSessions
from judges.worker import JudgeWorker
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.ids import TaskId, WorkerId
from schemas.judge_config import JudgeConfig, OpenAIConfig
from schemas.messages import Action, Judgement, Observation, Role, Verdict
from tests.support.browsers.labelled_shop import Kind, Labelled, LabelledShop, labelled, lucky_guess
from tests.support.browsers.page_plays import CONFIG, SUBJECTS, judged, playing
from tests.support.browsers.patience import wait_for_pages
from tests.support.judging.reading_model import ReadingModel
from tests.support.judging.scripted_endpoint import ScriptedEndpoint, scripted_endpoint
from tests.support.texts.page_text import ReadBrowser, ScreenshotTexts

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
SIZE = (1024, 1400)
"""Of the window: everything that a fact asks for is in view without scrolling."""
JUDGE_CONFIG = JudgeConfig(judge=RubricJudge.name)
WORKER = WorkerId("judge-2")
RULES = {Kind.SUCCESS: Verdict.SUCCESS, Kind.BLOCKED: Verdict.EXCLUDED}
"""What a rubric has to say of each kind; of the others, failure."""


def follow(observation: Observation) -> Action:
    assert observation.oracle_action is not None, f"{observation.url} has nothing for the next step of this way"
    return observation.oracle_action


@asynccontextmanager
async def reading_judge(bus: Bus, texts: ScreenshotTexts) -> AsyncIterator[ScriptedEndpoint]:
    """The staged judge as a worker of its own, with every part of a run's: endpoints, journal, budget, prompts."""
    status = Status(Role.JUDGE, WORKER)
    async with scripted_endpoint(ReadingModel(texts.by_digest)) as endpoint:
        config = OpenAIConfig(
            model="reader", base_url=endpoint.base_url, openai_api_key_env_var="READER_KEY", max_concurrent=8
        )
        async with (
            open_endpoints(config, {"READER_KEY": "none"}) as endpoints,
            open_budget(bus, SUBJECTS, JUDGE_CONFIG, status) as budget,
            anyio.create_task_group() as group,
        ):
            journal = Journal(bus, SUBJECTS, rubric=JUDGE_CONFIG.rubric, worker=WORKER)
            sessions = RecordedSessions(endpoints=endpoints, journal=journal, budget=budget, config=config, status=status)
            worker = JudgeWorker(
                WorkerContext(bus, SUBJECTS, status),
                Config(bus_config=CONFIG, env_config=EnvConfig(evaluation_workers=4), judge_config=JUDGE_CONFIG),
                judge=RubricJudge(sessions, committed_prompts(JUDGE_CONFIG.rubric), JUDGE_CONFIG),
            )
            group.start_soon(worker.run)
            yield endpoint
            group.cancel_scope.cancel()


async def read_judgements(bus: Bus, texts: ScreenshotTexts, number: int) -> tuple[list[Judgement], list[str]]:
    """What the reading judge says of everything that was played, and how its endpoint answered."""
    subject = SUBJECTS.everything("judged")
    found = list[Judgement]()
    async with reading_judge(bus, texts) as endpoint, bus.tail(SUBJECTS.judged, subject) as records:
        while len(found) < number:
            message = (await anext(records)).message
            if isinstance(message, Judgement) and message.rubric == JUDGE_CONFIG.rubric:
                found.append(message)
        return found, endpoint.outcomes


def by_task(judgements: Sequence[Judgement]) -> Mapping[TaskId, Judgement]:
    return {each.trajectory.task.task: each for each in judgements}


def disagreement(way: Labelled, checks: Judgement, rubric: Judgement) -> str:
    """What is wrong with two judgements of one way; empty: nothing."""
    expected = Verdict.SUCCESS if way.kind is Kind.SUCCESS else Verdict.FAILURE
    right = (
        checks.verdict is expected
        and rubric.verdict is RULES.get(way.kind, Verdict.FAILURE)
        and rubric.blocked == (way.kind is Kind.BLOCKED)
    )
    said = "; ".join(f"{each.stage}: {each.passed} {each.reasoning}" for each in (*checks.stages, *rubric.stages))
    return "" if right else f"{way.name}: {checks.verdict.value}, {rubric.verdict.value} {rubric.error}: {said}"


def test_the_set_is_large_and_balanced() -> None:
    ways = labelled()
    kinds, difficulties = Counter(way.kind for way in ways), Counter(way.difficulty for way in ways)
    assert len(ways) == len({way.name for way in ways}) >= 60
    assert kinds[Kind.SUCCESS] >= 24
    assert kinds[Kind.NEAR_MISS] >= 16
    assert kinds[Kind.HALLUCINATED] >= 12
    assert kinds[Kind.BLOCKED] >= 8
    assert all(difficulties[each] >= 20 for each in Difficulty)
    for kind in Kind:
        assert {way.difficulty for way in ways if way.kind is kind} == set(Difficulty)


async def test_checks_and_the_rubric_agree_with_every_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_pages(monkeypatch)  # each step asks the page where the next one's element is
    ways, lucky, texts = labelled(), lucky_guess(), ScreenshotTexts()
    tasks = [way.task() for way in (*ways, lucky)]
    async with playing(
        tmp_path,
        follow,
        {"shop": LabelledShop()},
        size=SIZE,
        watched=lambda browser: ReadBrowser(browser, texts),
        rubrics=(EnvironmentJudge.name, JUDGE_CONFIG.rubric),
    ) as bus:
        checks = by_task(await judged(bus, tasks))
        rulings, outcomes = await read_judgements(bus, texts, len(tasks))
        blocklist = await read_blocklist(bus, SUBJECTS)
    rubric = by_task(rulings)
    assert [said for way in ways if (said := disagreement(way, checks[TaskId(way.name)], rubric[TaskId(way.name)]))] == []
    assert set(outcomes) == {"answered"}
    assert set(blocklist.entries) == {"shop"}
    # Where evidence counts, a right answer that was never seen is none.
    assert checks[TaskId(lucky.name)].verdict is Verdict.SUCCESS
    assert rubric[TaskId(lucky.name)].verdict is Verdict.FAILURE
    assert [each.stage for each in rubric[TaskId(lucky.name)].stages if not each.passed] == ["criterion_b"]
