"""A person's own judges: what their functions may say, and how a judge is opened."""

import threading
from collections.abc import Awaitable
from pathlib import Path

import anyio
import pytest

from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.presence import Status
from bus.subjects import Subjects
from judges.episode import JudgedEpisode
from judges.function_judge import Found, FunctionJudge
from judges.judge import Ruling, scored
from judges.named import JudgeOpening, judge, open_named
from schemas.errors import ConfigurationError, JudgeError, NoVerdict
from schemas.extensions import JUDGES
from schemas.judge_config import JudgeConfig, OpenAIConfig
from schemas.messages import Role, StageVerdict, Verdict
from tests import builders
from tests.deadlines import HANGS_S

EPISODE = builders.judged_episode(builders.trajectory(builders.task("t7")))
DETAILED = scored(passed=True, stages=(StageVerdict("price", True, "12.90"),))
SUBJECTS = Subjects(builders.RUN)
OPENED = """
from contextlib import asynccontextmanager
from judges.function_judge import FunctionJudge
from judges.named import opened_judge

@opened_judge("opened_v1")
@asynccontextmanager
async def opened(opening):
    judge = FunctionJudge("opened_v1", lambda episode: opening.context.bus is not None)
    judge.closed = []
    yield judge
    judge.closed.append(opening.context.worker.partition("-")[0])
"""


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("found", "verdict", "reward"),
    [
        (True, Verdict.SUCCESS, 1.0),
        (False, Verdict.FAILURE, 0.0),
        (1.0, Verdict.SUCCESS, 1.0),
        (1, Verdict.SUCCESS, 1.0),
        (0.99, Verdict.FAILURE, 0.99),
        (0, Verdict.FAILURE, 0.0),
    ],
)
async def test_what_a_function_says_is_a_ruling(found: Found, verdict: Verdict, reward: float) -> None:
    @judge("own_v1")
    def plain(episode: JudgedEpisode) -> Found:
        return found

    @judge("own_v1")
    async def waiting(episode: JudgedEpisode) -> Found:
        return found

    assert plain.name == "own_v1"
    for own in (plain, waiting):
        ruling = await own.judge(EPISODE)
        assert (ruling.verdict, ruling.reward) == (verdict, reward)


@pytest.mark.anyio
async def test_a_function_sees_the_episode_and_may_say_everything() -> None:
    async def late() -> Ruling:
        return DETAILED

    @judge("own_v1")
    def own(episode: JudgedEpisode) -> Ruling:
        assert episode is EPISODE
        assert threading.current_thread() is not threading.main_thread()
        return DETAILED

    @judge("own_v1")
    def later(episode: JudgedEpisode) -> Awaitable[Ruling]:
        return late()

    assert await own.judge(EPISODE) is DETAILED
    assert await later.judge(EPISODE) is DETAILED


@pytest.mark.anyio
@pytest.mark.parametrize("value", [None, "yes", 1.01, -0.5, float("nan"), float("inf"), (True,)])
async def test_what_a_function_may_not_say_is_no_verdict(value: object) -> None:
    def own(episode: JudgedEpisode) -> object:
        return value

    with pytest.raises(NoVerdict, match=r"own_v1 returned .*: return True or False, a reward from 0 to 1, or a Ruling"):
        await judge("own_v1")(own).judge(EPISODE)  # type: ignore[arg-type]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("raised", "expected", "says"),
    [
        (KeyError("price"), KeyError, "price"),
        (NoVerdict("there is none"), NoVerdict, "there is none"),
    ],
)
async def test_what_a_function_raises_goes_on(raised: Exception, expected: type[Exception], says: str) -> None:
    @judge("own_v1")
    def own(episode: JudgedEpisode) -> bool:
        raise raised

    with pytest.raises(expected, match=says) as caught:
        await own.judge(EPISODE)
    assert type(caught.value) is expected


@pytest.mark.anyio
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_function_without_an_end_is_not_waited_for(is_async: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judges.function_judge._LIMIT_S", 0.05)
    ends = threading.Event()

    async def waits(_: JudgedEpisode) -> bool:
        await anyio.sleep_forever()
        return True

    endless = FunctionJudge("endless_v1", waits if is_async else lambda _: ends.wait(20))
    with anyio.fail_after(HANGS_S), pytest.raises(JudgeError, match=r"endless_v1 came to no end within 0.05 s"):
        await endless.judge(EPISODE)
    ends.set()


def test_a_name_that_no_subject_holds_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"the judge's name 'own.v1' cannot name"):
        judge("own.v1")(lambda episode: True)


@pytest.mark.anyio
async def test_a_class_gets_its_name_and_is_made_when_it_is_opened() -> None:
    @judge("class_v1")
    class Own:
        name: str

        async def judge(self, episode: JudgedEpisode) -> Ruling:
            return DETAILED

    assert JUDGES.find("environment_v1").made.name == "environment_v1"
    assert Own().name == "class_v1"
    assert await Own().judge(EPISODE) is DETAILED


@pytest.mark.anyio
async def test_what_opens_a_judge_closes_it_too(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OPENED)
    bus = MemoryBus(SUBJECTS)
    opening = JudgeOpening(WorkerContext(bus, SUBJECTS, Status(Role.JUDGE, builders.WORKER)), JudgeConfig(), OpenAIConfig())
    async with open_named(f"{path}:opened_v1", opening) as opened:
        assert (await opened.judge(EPISODE)).verdict is Verdict.SUCCESS
        assert opened.closed == []  # type: ignore[attr-defined]
    assert opened.closed == ["worker"]  # type: ignore[attr-defined]
