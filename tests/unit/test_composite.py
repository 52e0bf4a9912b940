"""Composites: who is asked, what comes of it, and that no success rests on a verdict that is not there."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.attempts import rule
from judges.composite import CompositeJudge
from judges.composition import compose, leaves
from judges.episode import JudgedEpisode
from judges.judge import Judge, Ruling, scored, undecided
from schemas.errors import ConfigurationError, JudgeError, NoVerdict
from schemas.judge_config import Composite
from schemas.messages import JudgeProtocol, RewardPart, StageUsage, StageVerdict, Verdict
from tests import builders

EPISODE = builders.judged_episode(builders.trajectory(builders.task()))
USAGE = StageUsage(stage="blocking", model="m", num_calls=1)
OUTCOMES = "sfebxr"
"""Success, failure, error as a ruling, blocked, NoVerdict raised, JudgeError raised."""


class GivenJudge:
    """Comes to what it is told, and counts how often it is asked."""

    def __init__(self, name: str, outcome: str) -> None:
        self.name = name
        self.outcome = outcome
        self.num_asked = 0

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        self.num_asked += 1
        match self.outcome:
            case "s" | "f":
                return scored(passed=self.outcome == "s", stages=(StageVerdict("stage", self.outcome == "s"),), usage=(USAGE,))
            case "e":
                return undecided("the ruling has none", usage=(USAGE,))
            case "b":
                return Ruling(verdict=Verdict.EXCLUDED, reward=None, blocked=True, error="captcha", usage=(USAGE,))
            case "x":
                raise NoVerdict("there is none")
            case _:
                raise JudgeError("it is away")


class RulingJudge:
    def __init__(self, name: str, ruling: Ruling) -> None:
        self.name = name
        self.ruling = ruling

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        return self.ruling


class RaisingJudge:
    def __init__(self, name: str, raised: Exception) -> None:
        self.name = name
        self.raised = raised

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        raise self.raised


def given_judges(outcomes: str) -> list[GivenJudge]:
    return [GivenJudge(f"j{index}", outcome) for index, outcome in enumerate(outcomes)]


def composite(
    combine: Literal["all", "any", "weighted"], outcomes: str, *, weights: Sequence[float] = (), threshold: float = 0.5
) -> tuple[CompositeJudge, list[GivenJudge]]:
    judges = given_judges(outcomes)
    parts = {judge.name: weight for judge, weight in zip(judges, weights or [1.0] * len(judges), strict=True)}
    return CompositeJudge("whole", Composite(combine=combine, parts=parts, threshold=threshold), judges), judges


async def came_to(judge: CompositeJudge) -> str:
    """In the letters of `OUTCOMES`."""
    ruling = await judge.judge(EPISODE)
    if ruling.curable:
        return "r"
    assert ruling.blocked == (ruling.verdict is Verdict.EXCLUDED)
    return {Verdict.SUCCESS: "s", Verdict.FAILURE: "f", Verdict.ERROR: "e", Verdict.EXCLUDED: "b"}[ruling.verdict]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("combine", "outcomes", "expected", "num_asked"),
    [
        ("all", "s", "s", 1),
        ("all", "ss", "s", 2),
        ("all", "sfs", "f", 2),
        ("all", "fe", "f", 1),
        ("all", "fb", "f", 1),
        ("all", "ef", "f", 2),
        ("all", "rf", "f", 2),
        ("all", "xfs", "f", 2),
        ("all", "es", "e", 2),
        ("all", "se", "e", 2),
        ("all", "sx", "e", 2),
        ("all", "sr", "r", 2),
        ("all", "ers", "r", 3),
        ("all", "sbs", "b", 2),
        ("all", "ebs", "b", 2),
        ("all", "rb", "b", 2),
        ("any", "f", "f", 1),
        ("any", "ff", "f", 2),
        ("any", "fsf", "s", 2),
        ("any", "sb", "s", 1),
        ("any", "es", "s", 2),
        ("any", "rs", "s", 2),
        ("any", "ef", "e", 2),
        ("any", "fx", "e", 2),
        ("any", "fr", "r", 2),
        ("any", "fbs", "b", 2),
        ("weighted", "ss", "s", 2),
        ("weighted", "sf", "s", 2),
        ("weighted", "sff", "f", 3),
        ("weighted", "ses", "e", 2),
        ("weighted", "sxs", "e", 2),
        ("weighted", "srs", "r", 2),
        ("weighted", "sbs", "b", 2),
        ("weighted", "ff", "f", 2),
    ],
)
async def test_what_parts_come_to(
    combine: Literal["all", "any", "weighted"], outcomes: str, expected: str, num_asked: int
) -> None:
    judge, judges = composite(combine, outcomes)
    assert await came_to(judge) == expected
    assert [each.num_asked for each in judges] == [1] * num_asked + [0] * (len(outcomes) - num_asked)


@given(
    combine=st.sampled_from(["all", "any", "weighted"]),
    outcomes=st.text(OUTCOMES, min_size=1, max_size=5),
    threshold=st.floats(0.001, 1),
)
def test_no_success_without_every_verdict_that_it_needs(
    combine: Literal["all", "any", "weighted"], outcomes: str, threshold: float
) -> None:
    judge, judges = composite(combine, outcomes, threshold=threshold)
    found = anyio.run(came_to, judge)
    asked = "".join(each.outcome for each in judges if each.num_asked)
    assert outcomes.startswith(asked)
    if found == "s":
        needed = {"all": set(outcomes) == {"s"}, "any": asked.endswith("s"), "weighted": set(outcomes) <= {"s", "f"}}
        assert needed[combine]
        assert "s" in asked
        assert "b" not in asked
    if found == "f":
        needed = {"all": asked.endswith("f"), "any": set(outcomes) == {"f"}, "weighted": set(outcomes) <= {"s", "f"}}
        assert needed[combine]
    if found == "b":
        assert asked.endswith("b")
    assert found != "x"


@pytest.mark.anyio
async def test_stages_carry_the_judges_name_and_all_usage_is_kept() -> None:
    judge, _ = composite("all", "sf")
    ruling = await judge.judge(EPISODE)
    assert [(stage.stage, stage.passed) for stage in ruling.stages] == [("j0.stage", True), ("j1.stage", False)]
    assert (ruling.reward, ruling.usage) == (0.0, (USAGE, USAGE))
    judge, _ = composite("any", "eb")
    ruling = await judge.judge(EPISODE)
    assert (ruling.blocked, ruling.usage, ruling.error) == (True, (USAGE, USAGE), "j1: captcha")
    judge, _ = composite("all", "esx")
    ruling = await judge.judge(EPISODE)
    assert (ruling.usage, ruling.error) == ((USAGE, USAGE), "j0: the ruling has none; j2: there is none")
    asked = tuple(JudgeProtocol(judge=name, prompts=name, digest="d") for name in ("j0", "j1"))
    rulings = [Ruling(verdict=Verdict.SUCCESS, reward=1.0, protocols=(each,)) for each in asked]
    both = [RulingJudge(each.judge, ruling) for each, ruling in zip(asked, rulings, strict=True)]
    assert (await CompositeJudge("whole", Composite(parts={"j0": 1, "j1": 1}), both).judge(EPISODE)).protocols == asked
    plain = RulingJudge("j0", Ruling(verdict=Verdict.FAILURE, reward=0.0))
    ruling = await CompositeJudge("whole", Composite(parts={"j0": 1}), [plain]).judge(EPISODE)
    assert ruling.stages == (StageVerdict("j0", passed=False),)


@pytest.mark.anyio
@pytest.mark.parametrize("raised", [JudgeError("it is away"), KeyError("a person's mistake")])
async def test_what_was_spent_is_kept_when_another_part_failed(raised: Exception) -> None:
    failing = RaisingJudge("j1", raised)
    whole = CompositeJudge("whole", Composite(parts={"j0": 1, "j1": 1}), [GivenJudge("j0", "s"), failing])
    ruling = await rule(whole, EPISODE, max_attempts=1)
    assert (ruling.verdict, ruling.usage, ruling.curable) == (Verdict.ERROR, (USAGE,), False)
    assert [stage.stage for stage in ruling.stages] == ["j0.stage"]
    assert str(raised) in ruling.error


@pytest.mark.anyio
async def test_a_part_that_breaks_does_not_undo_what_another_decides() -> None:
    parts: list[Judge] = [RaisingJudge("j0", KeyError("a person's mistake")), GivenJudge("j1", "f")]
    ruling = await CompositeJudge("whole", Composite(parts={"j0": 1, "j1": 1}), parts).judge(EPISODE)
    assert ruling.verdict is Verdict.FAILURE


@pytest.mark.anyio
async def test_weighted_rewards_are_parts_with_their_steps() -> None:
    parts = (RewardPart("milestones", 0.5, (0.0, 0.5)), RewardPart("outcome", 0.5))
    way = RulingJudge("way", Ruling(verdict=Verdict.SUCCESS, reward=1.0, parts=parts))
    end = RulingJudge("end", scored(passed=False))
    both = Composite(combine="weighted", parts={"way": 3, "end": 1}, threshold=0.75)
    ruling = await CompositeJudge("whole", both, [way, end]).judge(EPISODE)
    assert (ruling.verdict, ruling.reward) == (Verdict.SUCCESS, 0.75)
    assert ruling.parts == (RewardPart("way", 0.75, (0.0, 0.375)), RewardPart("end", 0.0))
    assert ruling.step_rewards == (0.0, 0.375)


@pytest.mark.anyio
@pytest.mark.parametrize(("threshold", "expected"), [(0.8, "s"), (0.81, "f")])
async def test_a_threshold_is_reached_but_for_rounding(threshold: float, expected: str) -> None:
    judge, _ = composite("weighted", "ssf", weights=(0.7, 0.1, 0.2), threshold=threshold)
    assert await came_to(judge) == expected


@pytest.mark.anyio
async def test_composites_of_composites() -> None:
    composites = {
        "cheap": Composite(combine="any", parts={"j0": 1, "j1": 1}),
        "whole": Composite(parts={"cheap": 1, "j2": 1, "j1": 1}),
    }
    assert leaves("whole", composites) == ("j0", "j1", "j2")
    assert leaves("j2", composites) == ("j2",)
    for outcomes, expected, num_asked in [("fss", "s", [1, 1, 1]), ("ffs", "f", [1, 1, 0]), ("efs", "f", [1, 1, 1])]:
        judges = given_judges(outcomes)
        judge = compose("whole", composites, {each.name: each for each in judges})
        assert isinstance(judge, CompositeJudge)
        assert (judge.name, await came_to(judge)) == ("whole", expected)
        assert [each.num_asked for each in judges] == num_asked


class AskedJudge(GivenJudge):
    """Asks a model."""

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        return replace(await super().judge(episode), protocols=(JudgeProtocol(judge=self.name, prompts="p", digest="d"),))


@pytest.mark.anyio
async def test_a_judge_that_stands_in_several_composites_is_asked_and_accounted_for_once_an_attempt() -> None:
    composites = {
        "one": Composite(combine="any", parts={"shared": 1}),
        "other": Composite(combine="any", parts={"shared": 1}),
        "whole": Composite(parts={"one": 1, "other": 1, "shared": 1}),
    }
    shared = AskedJudge("shared", "s")
    whole = compose("whole", composites, {"shared": shared})
    for num_asked in (1, 2):
        ruling = await whole.judge(EPISODE)
        assert (ruling.verdict, shared.num_asked, ruling.usage, len(ruling.protocols)) == (
            Verdict.SUCCESS,
            num_asked,
            (USAGE,),
            1,
        )
        assert [stage.stage for stage in ruling.stages] == ["one.shared.stage", "other.shared.stage", "shared.stage"]


@pytest.mark.anyio
async def test_judges_of_one_name_in_two_files_keep_their_own_weights_and_rulings() -> None:
    both = Composite(combine="weighted", parts={"./a.py:price": 1, "./b.py:price": 3}, threshold=0.5)
    judges = [GivenJudge("price", "f"), GivenJudge("price", "s")]
    ruling = await CompositeJudge("whole", both, judges).judge(EPISODE)
    assert (ruling.verdict, ruling.reward) == (Verdict.SUCCESS, 0.75)
    assert ruling.parts == (RewardPart("price", 0.0), RewardPart("price", 0.75))


@pytest.mark.parametrize(
    ("name", "says"),
    [("a", r"a is made of itself \(a of b of a\)"), ("c", r"c is made of itself \(c of c\)"), ("d", r"\(b of a of b\)")],
)
def test_a_composite_of_itself_is_refused(name: str, says: str) -> None:
    parts = {"a": ["j0", "b"], "b": ["a"], "c": ["c"], "d": ["j0", "b"]}
    composites = {each: Composite(parts=dict.fromkeys(names, 1.0)) for each, names in parts.items()}
    with pytest.raises(ConfigurationError, match=says):
        leaves(name, composites)


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.5])
def test_a_threshold_that_anyone_or_nobody_reaches_is_refused(threshold: float) -> None:
    with pytest.raises(ConfigurationError, match="write a mean reward above 0, at most 1"):
        Composite(combine="weighted", parts={"j0": 1}, threshold=threshold)
