"""Rewards on the way: which step earns which address, what the end earns, and when there is no verdict."""

from dataclasses import dataclass

import msgspec
import pytest

from bus.evidence import Evidence
from bus.memory import MemoryBus
from bus.subjects import Subjects
from judges.episode import JudgedEpisode
from judges.judge import OUTCOME, Ruling
from judges.named.milestones_v1 import MILESTONES, MilestonesJudge
from schemas.errors import JudgeError, NoVerdict
from schemas.messages import Check, CheckKind, CheckMatch, FinalState, Observation, Outcome, Task, Trajectory, Verdict
from tests import builders

pytestmark = pytest.mark.anyio
HOST = "http://shop.test"
MUG, CART = Check(CheckKind.URL, ("/mug",)), Check(CheckKind.URL, ("/cart",))
BLUE = Check(CheckKind.ANSWER, ("blue",))
FULL = Check(CheckKind.PAGE, ("1",), expression="n")
SUCCESS, FAILURE = Verdict.SUCCESS, Verdict.FAILURE


class Walk(JudgedEpisode):
    """An episode that saw these pages."""

    def __init__(self, trajectory: Trajectory, paths: tuple[str, ...]) -> None:
        subjects = Subjects(trajectory.task.run)
        super().__init__(trajectory, Evidence(MemoryBus(subjects), subjects))
        self.paths = paths

    async def observations(self) -> tuple[Observation, ...]:
        seen = (builders.observation(self.trajectory.task, step) for step in range(len(self.paths)))
        return tuple(msgspec.structs.replace(each, url=HOST + path) for each, path in zip(seen, self.paths, strict=True))


@dataclass(frozen=True)
class Row:
    what: str
    checks: tuple[Check, ...]
    paths: tuple[str, ...]
    """Observation k's; as many steps, of which the last leads to `end`."""
    end: str | None
    verdict: Verdict
    steps: tuple[float, ...]
    at_end: float
    answer: str = ""
    value: str = "0"


ROWS = [
    Row("both in turn", (MUG, CART), ("/", "/mug", "/cart"), "/cart", SUCCESS, (0.5, 0.5, 0), 0),
    Row("in the other order", (MUG, CART), ("/", "/cart", "/mug"), "/mug", SUCCESS, (0.5, 0.5, 0), 0),
    Row("one of two", (MUG, CART), ("/", "/mug", "/"), "/", FAILURE, (0.5, 0, 0), 0),
    Row("only once", (MUG, CART), ("/", "/mug", "/", "/mug"), "/mug", FAILURE, (0.5, 0, 0, 0), 0),
    Row("none", (MUG, CART), ("/", "/a"), "/a", FAILURE, (), 0),
    Row("the last step reached it", (CART,), ("/", "/mug"), "/cart", SUCCESS, (0, 1), 0),
    Row("way and answer", (MUG, BLUE), ("/", "/mug"), "/mug", SUCCESS, (0.5, 0), 0.5, answer="Blue"),
    Row("way, wrong answer", (MUG, BLUE), ("/", "/mug"), "/mug", FAILURE, (0.5, 0), 0, answer="red"),
    Row("guessed answer", (MUG, BLUE), ("/", "/"), "/", FAILURE, (), 0, answer="blue"),
    Row("three kinds", (MUG, BLUE, FULL, CART), ("/", "/mug"), "/cart", SUCCESS, (0.25, 0.25), 0.5, answer="blue", value="1"),
    Row("two at one step", (MUG, Check(CheckKind.URL, ("mug",), CheckMatch.CONTAINS)), ("/", "/mug"), "/", SUCCESS, (1, 0), 0),
    Row("started there and ended there", (MUG,), ("/mug", "/"), "/mug", SUCCESS, (), 1),
    Row("started there and left", (MUG,), ("/mug", "/"), "/", FAILURE, (), 0),
    Row("started there and went round", (MUG,), ("/mug", "/", "/mug"), "/", FAILURE, (), 0),
    Row("no address", (BLUE,), ("/",), "/", SUCCESS, (), 1, answer="blue"),
    Row("page gone, all reached", (MUG, BLUE), ("/", "/mug"), None, SUCCESS, (0.5, 0), 0.5, answer="blue"),
    Row("page gone, wrong answer", (MUG, BLUE), ("/", "/"), None, FAILURE, (), 0, answer="red"),
]


def task_of(*checks: Check) -> Task:
    return msgspec.structs.replace(builders.task(max_steps=8), checks=checks)


def walk(
    checks: tuple[Check, ...], paths: tuple[str, ...], end: str | None, *, answer: str = "", value: str = "0"
) -> JudgedEpisode:
    number = len(paths)
    trajectory = builders.trajectory(task_of(*checks), outcome=Outcome.ANSWERED, num_observations=number, num_steps=number)
    values = (value,) if FULL in checks else ()
    state = FinalState(url=HOST + end, title="", values=values) if end is not None else None
    return Walk(msgspec.structs.replace(trajectory, answer=answer, final_state=state), paths)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what)
async def test_each_step_earns_what_it_reached(row: Row) -> None:
    episode = walk(row.checks, row.paths, row.end, answer=row.answer, value=row.value)
    ruling = await MilestonesJudge().judge(episode)
    assert ruling.verdict is row.verdict
    assert ruling.step_rewards == row.steps
    parts = {part.name: part.value for part in ruling.parts}
    assert parts == {OUTCOME: row.at_end} | ({MILESTONES: sum(row.steps)} if any(row.steps) else {})
    assert ruling.reward == sum(row.steps) + row.at_end
    assert (ruling.reward == 1) == (row.verdict is SUCCESS)
    assert all(stage.passed for stage in ruling.stages) == (row.verdict is SUCCESS)


async def test_a_third_is_exact_enough() -> None:
    checks = tuple(Check(CheckKind.URL, (path,)) for path in ("/a", "/b", "/c"))
    ruling: Ruling = await MilestonesJudge().judge(walk(checks, ("/", "/a", "/b"), "/c"))
    assert ruling.reward == 1
    assert ruling.step_rewards == pytest.approx((1 / 3,) * 3)


async def test_the_observation_behind_the_last_step_is_its_own() -> None:
    trajectory = builders.trajectory(task_of(MUG), outcome=Outcome.STEP_LIMIT, num_observations=3, num_steps=2)
    state = FinalState(url=f"{HOST}/mug", title="")
    episode = Walk(msgspec.structs.replace(trajectory, final_state=state), ("/", "/", "/mug"))
    assert (await MilestonesJudge().judge(episode)).step_rewards == (0, 1)


async def test_stages_say_which_step_it_was() -> None:
    ruling = await MilestonesJudge().judge(walk((BLUE, MUG, CART), ("/", "/mug"), "/"))
    assert [(stage.stage, stage.passed, stage.reasoning) for stage in ruling.stages] == [
        ("check_1", False, "there was no answer"),
        ("check_2", True, 'after step 0, the address "http://shop.test/mug" equals "/mug"'),
        ("check_3", False, 'the address "http://shop.test/" does not equal "/cart"'),
    ]


@pytest.mark.parametrize(
    ("checks", "paths"), [((MUG,), ("/", "/")), ((FULL, BLUE), ("/",)), ((FULL, MUG), ("/", "/mug")), ((MUG,), ("/mug", "/"))]
)
async def test_a_page_that_nobody_could_read_is_no_failure(checks: tuple[Check, ...], paths: tuple[str, ...]) -> None:
    ruling = await MilestonesJudge().judge(walk(checks, paths, None, answer="blue"))
    assert (ruling.verdict, ruling.reward) == (Verdict.ERROR, None)


async def test_without_checks_or_a_chain_there_is_no_verdict() -> None:
    with pytest.raises(NoVerdict, match="milestones_v1 needs checks, which task t1 has not"):
        await MilestonesJudge().judge(walk((), ("/",), "/", answer="blue"))
    trajectory = builders.trajectory(task_of(MUG), num_observations=2, num_steps=1)
    with pytest.raises(NoVerdict, match="aged out"):
        await MilestonesJudge().judge(builders.judged_episode(trajectory))
    with pytest.raises(JudgeError, match=r"task t1: a check expects the pattern"):
        await MilestonesJudge().judge(walk((Check(CheckKind.URL, ("(",), CheckMatch.PATTERN),), ("/", "/"), "/"))
