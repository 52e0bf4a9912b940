"""Shaping terms by value: what they take off, who bears it, and when nothing is read or taken."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.evidence import Evidence
from bus.memory import MemoryBus
from bus.subjects import Subjects
from judges.episode import JudgedEpisode
from judges.judge import OUTCOME, Ruling, excluded, scored, undecided
from judges.shaping import FORMAT, LENGTH, shape, shaped
from schemas.errors import NoVerdict
from schemas.judge_config import ShapingConfig
from schemas.messages import RewardPart, Split, StepRequest, Trajectory, Verdict
from tests import builders

SUBJECTS = Subjects(builders.RUN)


class ChainOfSteps(JudgedEpisode):
    """Counts how often its steps are read; None: they have aged out."""

    def __init__(self, trajectory: Trajectory, parsed: Sequence[bool] | None) -> None:
        super().__init__(trajectory, Evidence(MemoryBus(SUBJECTS), SUBJECTS))
        self.parsed = parsed
        self.num_reads = 0

    async def steps(self) -> tuple[StepRequest, ...]:
        self.num_reads += 1
        if self.parsed is None:
            raise NoVerdict("the chain has aged out")
        made = [builders.step_request(self.trajectory.task, step) for step in range(len(self.parsed))]
        pairs = zip(made, self.parsed, strict=True)
        return tuple(msgspec.structs.replace(step, parsed=parsed) for step, parsed in pairs)


def played(*, num_steps: int = 4, num_unparsed: int = 0, max_steps: int = 8, split: Split = Split.TRAIN) -> Trajectory:
    trajectory = builders.trajectory(builders.task(max_steps=max_steps, split=split), num_steps=num_steps)
    return msgspec.structs.replace(trajectory, num_unparsed=num_unparsed)


def test_each_term_is_a_part_that_its_steps_bear() -> None:
    config = ShapingConfig(format=0.4, length=0.2)
    ruling = shaped(scored(passed=True), played(num_unparsed=1), config, [False, True, False, False])
    assert [part.name for part in ruling.parts] == [OUTCOME, FORMAT, LENGTH]
    assert [part.value for part in ruling.parts] == pytest.approx([1.0, -0.1, -0.1])
    assert ruling.parts[1].steps == pytest.approx((0.0, -0.1, 0.0, 0.0))
    assert ruling.parts[2].steps == pytest.approx((-0.025,) * 4)
    assert ruling.reward == pytest.approx(0.8)
    assert ruling.verdict is Verdict.SUCCESS
    assert ruling.step_rewards == pytest.approx((-0.025, -0.125, -0.025, -0.025))


def test_without_knowing_the_steps_the_end_bears_the_format() -> None:
    ruling = shaped(scored(passed=False), played(num_unparsed=3), ShapingConfig(format=0.4))
    assert ruling.reward == pytest.approx(-0.3)
    assert ruling.verdict is Verdict.FAILURE
    assert (ruling.parts[1].steps, ruling.step_rewards) == ((), ())


@pytest.mark.parametrize(("last", "reward", "left"), [(0, 1.0, 1.0), (1, 1.0, 0.0), (2, -0.5, -0.5)])
def test_a_last_turn_that_nobody_could_read_earns_nothing(last: int, reward: float, left: float) -> None:
    trajectory = msgspec.structs.replace(played(num_unparsed=last), num_unparsed_last=last)
    ruling = shaped(Ruling(verdict=Verdict.FAILURE, reward=reward), trajectory, ShapingConfig(last_turn=True))
    assert ruling.reward == left
    assert [part.name for part in ruling.parts] == [OUTCOME, *["last_turn"] * (left != reward)]


def test_a_last_turn_that_never_ended_its_thinking_earns_nothing() -> None:
    trajectory = msgspec.structs.replace(played(), thinking_ended_last=False)
    ruling = shaped(Ruling(verdict=Verdict.SUCCESS, reward=1.0), trajectory, ShapingConfig(last_turn=True))
    assert ruling.reward == 0.0
    assert shaped(Ruling(verdict=Verdict.SUCCESS, reward=1.0), trajectory, ShapingConfig()).reward == 1.0


def test_what_the_judge_gave_to_steps_stays_theirs() -> None:
    parts = (RewardPart("milestones", 0.5, (0.5,)), RewardPart(OUTCOME, 0.5))
    ruling = shaped(Ruling(verdict=Verdict.SUCCESS, reward=1.0, parts=parts), played(), ShapingConfig(length=0.8))
    assert ruling.parts[:2] == parts
    assert ruling.reward == pytest.approx(0.6)
    assert ruling.step_rewards == pytest.approx((0.4, -0.1, -0.1, -0.1))


@pytest.mark.parametrize("ruling", [excluded("it failed"), undecided("no verdict")], ids=lambda ruling: ruling.verdict.value)
def test_where_there_is_no_reward_nothing_is_taken_off(ruling: Ruling) -> None:
    assert shaped(ruling, played(num_unparsed=4), ShapingConfig(format=1, length=1)) is ruling


@pytest.mark.parametrize("reward", [1e12 / 3, -1e300, 1e-300])
def test_a_reward_of_any_size_can_be_shaped(reward: float) -> None:
    """Whatever a page gave: the rounding of a sum ends no worker."""
    ruling = Ruling(verdict=Verdict.FAILURE, reward=reward)
    config = ShapingConfig(format=0.1, length=0.2)
    for num_unparsed in range(4):
        found = shaped(ruling, played(num_steps=3, num_unparsed=num_unparsed, max_steps=7), config)
        assert [part.name for part in found.parts] == [OUTCOME, FORMAT, LENGTH]


def test_evaluation_is_never_shaped() -> None:
    ruling = scored(passed=True)
    assert shaped(ruling, played(num_unparsed=4, split=Split.EVAL), ShapingConfig(format=1, length=1)) is ruling


def test_a_term_without_weight_is_no_part() -> None:
    assert shaped(scored(passed=True), played(num_unparsed=4), ShapingConfig()) == scored(passed=True)
    names = [part.name for part in shaped(scored(passed=True), played(), ShapingConfig(length=1)).parts]
    assert names == [OUTCOME, LENGTH]


def test_an_episode_without_a_step_has_nothing_to_bear() -> None:
    assert shaped(scored(passed=True), played(num_steps=0), ShapingConfig(format=1, length=1)) == scored(passed=True)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("num_unparsed", "parsed", "config", "num_reads", "steps"),
    [
        (1, (True, False), ShapingConfig(format=1), 1, (0.0, -0.5)),
        (0, (True, True), ShapingConfig(format=1), 0, (0.0, 0.0)),
        (2, (False, False), ShapingConfig(format=1), 0, (-0.5, -0.5)),
        (1, None, ShapingConfig(format=1), 1, ()),
        (1, (True, False), ShapingConfig(length=1), 0, (-0.125, -0.125)),
    ],
)
async def test_the_chain_is_read_where_it_matters(
    num_unparsed: int, parsed: tuple[bool, ...] | None, config: ShapingConfig, num_reads: int, steps: tuple[float, ...]
) -> None:
    episode = ChainOfSteps(played(num_steps=2, num_unparsed=num_unparsed), parsed)
    ruling = await shape(scored(passed=True), episode, config)
    assert (episode.num_reads, ruling.step_rewards) == (num_reads, steps)
    expected = 1 - 0.5 * num_unparsed if config.format else 0.75
    assert ruling.reward == pytest.approx(expected)


@pytest.mark.anyio
@pytest.mark.parametrize("split", list(Split))
async def test_an_excluded_or_evaluated_episode_is_not_read(split: Split) -> None:
    episode = ChainOfSteps(played(num_unparsed=1, split=split), None)
    ruling = excluded("it failed") if split is Split.TRAIN else scored(passed=True)
    assert await shape(ruling, episode, ShapingConfig(format=1)) is ruling
    assert episode.num_reads == 0


@given(
    unparsed=st.lists(st.booleans(), max_size=40),
    weights=st.tuples(st.floats(0, 10), st.floats(0, 10)),
    passed=st.booleans(),
)
def test_the_steps_bear_exactly_what_is_taken_off(unparsed: list[bool], weights: tuple[float, float], passed: bool) -> None:
    trajectory = played(num_steps=len(unparsed), num_unparsed=sum(unparsed), max_steps=40)
    ruling = shaped(scored(passed=passed), trajectory, ShapingConfig(format=weights[0], length=weights[1]), unparsed)
    assert ruling.reward is not None
    assert sum(ruling.step_rewards) == pytest.approx(ruling.reward - float(passed))
    assert ruling.reward <= float(passed)
