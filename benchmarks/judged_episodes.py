"""Ended episodes for judges, no two screenshots of which are equal, and a scripted model that knows how each has to be judged.

Invariant: what the model says follows from the text of the question alone, so it says the same in whatever order it is asked.
"""

import enum
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from bus.evidence import Evidence
from bus.memory import MemoryBus
from bus.ports import Bus
from bus.subjects import Subjects
from judges.episode import JudgedEpisode
from schemas.messages import Fact, Observation, Outcome, Screenshot, StepRequest, Trajectory, Verdict
from tests.builders import observation, step_request, task
from tests.support.judging.scripted_judging import SUBJECTS


class Kind(enum.StrEnum):
    """What an episode is, as its judge ought to find it."""

    SUCCESS = "success"
    NEAR_MISS = "near miss"
    """All but the last fact can be proved."""
    HALLUCINATED = "hallucinated"
    """The answer claims what no screenshot shows."""
    NO_ANSWER = "no answer"
    BLOCKED = "blocked"


VERDICTS: Final = {
    Kind.SUCCESS: Verdict.SUCCESS,
    Kind.NEAR_MISS: Verdict.FAILURE,
    Kind.HALLUCINATED: Verdict.FAILURE,
    Kind.NO_ANSWER: Verdict.FAILURE,
    Kind.BLOCKED: Verdict.EXCLUDED,
}
NUM_FACTS: Final = 3
REASONING: Final = 2 * "Screenshot 3 shows the list with its filter set, and screenshot 5 the item with its price and shelf. "
_WORDS: Final = {
    "blocking_verdict": ("BLOCKED", "NOT_BLOCKED"),
    "keypoint_verdict": ("NEEDED", "NOT_NEEDED"),
    "criterion_verdict": ("SUCCESS", "FAILURE"),
}
_KIND: Final = re.compile(r"It ends as: ([a-z ]+)\.")
_NUMBER: Final = re.compile(r"Screenshot (\d+) of \d+\.")
_FACT: Final = re.compile(r"^Fact: fact (\d+) ", re.MULTILINE)
_CLAIMS: Final = "is every claim of the final answer visible"


@dataclass(frozen=True)
class Ended:
    """An ended episode with its chain."""

    trajectory: Trajectory
    observations: Sequence[Observation]
    steps: Sequence[StepRequest]

    async def write_chain(self, bus: Bus, subjects: Subjects) -> None:
        """As far as a judge reads it."""
        of = self.trajectory
        stream = subjects.episodes(subjects.shard(of.episode))
        for observed, step in zip(self.observations, self.steps, strict=True):
            await bus.append(stream, subjects.chain_record(of.episode, of.attempt, "obs", observed.step), observed)
            await bus.append(stream, subjects.chain_record(of.episode, of.attempt, "act", step.step), step)

    async def publish(self, bus: Bus, subjects: Subjects) -> None:
        of = self.trajectory
        await bus.append(subjects.trajectories, subjects.trajectory(of.task.split, of.episode), of)

    async def before_a_judge(self) -> JudgedEpisode:
        """On a bus in memory."""
        bus = MemoryBus(SUBJECTS)
        await self.write_chain(bus, SUBJECTS)
        return JudgedEpisode(self.trajectory, Evidence(bus, SUBJECTS))


def ended(kind: Kind, number: int, num_steps: int, screenshot: Callable[[int], Screenshot]) -> Ended:
    """Episode `number`; `screenshot` draws one from a seed."""
    of = msgspec.structs.replace(
        task(f"t{number}", max_steps=30),
        run=SUBJECTS.run,
        instruction=f"Errand {number}: look for the cheapest desk lamp of the shop that can be dimmed, put it into the cart, "
        f"and tell its name, its price and the shelf on which it stands. It ends as: {kind}.",
        website="https://shop.example/",
        facts=tuple(Fact(f"fact {place} of errand {number}: {_SHOWN[place - 1]}", group="lamp") for place in (1, 2, 3)),
        reference_answer=f"Lamp {number}, 12.90 euro, shelf {number % 7}",
        difficulty=4,
    )
    answer = f"The cheapest lamp that can be dimmed is lamp {number}: it costs 12.90 euro and stands on shelf {number % 7}."
    trajectory = Trajectory(
        task=of,
        attempt=1,
        outcome=Outcome.STEP_LIMIT if kind is Kind.NO_ANSWER else Outcome.ANSWERED,
        num_observations=num_steps,
        num_steps=num_steps,
        answer="" if kind is Kind.NO_ANSWER else answer,
    )
    seen = (
        msgspec.structs.replace(
            observation(of, step),
            screenshot=screenshot(100 * number + step),
            url=f"https://shop.example/lamps?page={step}&errand={number}",
            title=f"Lamps, page {step}",
        )
        for step in range(num_steps)
    )
    return Ended(trajectory, tuple(seen), tuple(step_request(of, step) for step in range(num_steps)))


_SHOWN = ("the filter for dimming is set", "the lamps are ordered by price", "the lamp is in the cart")
assert len(_SHOWN) == NUM_FACTS


def noise(screenshot_kb: int) -> Callable[[int], Screenshot]:
    """Screenshots of one size that are as hard to compress as JPEG, for endpoints that do not look."""

    def screenshot(seed: int) -> Screenshot:
        data = random.Random(seed).randbytes(screenshot_kb * 1000)
        return Screenshot(data=data, media_type="image/jpeg", width=1280, height=768)

    return screenshot


def verdict_word(schema_name: str, text: str) -> str:
    """The right verdict, read from the text of a question: of key points every second one is needed."""
    return _WORDS[schema_name][not _holds(schema_name, text)]


def _holds(schema_name: str, text: str) -> bool:
    found = _KIND.search(text)
    assert found is not None, text
    kind = Kind(found[1])
    if schema_name == "blocking_verdict":
        return kind is Kind.BLOCKED
    if schema_name == "keypoint_verdict":
        number = _NUMBER.search(text)
        assert number is not None, text
        return int(number[1]) % 2 == 0
    if fact := _FACT.search(text):
        return not (kind is Kind.NEAR_MISS and int(fact[1]) == NUM_FACTS)
    return not (kind in (Kind.HALLUCINATED, Kind.NO_ANSWER) and _CLAIMS in text)


def schema_name_of(body: Mapping[str, object]) -> str:
    """Of a request that asks for a JSON schema."""
    asked = msgspec.convert(body["response_format"], _Format)
    return asked.json_schema.name


class _Schema(msgspec.Struct):
    name: str


class _Format(msgspec.Struct):
    json_schema: _Schema
