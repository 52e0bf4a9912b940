"""Defines the port through which the rubric judge puts questions to models. `judges.rubric.session` provides it."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from judges.endpoint.port import Question
from schemas.errors import NoVerdict
from schemas.messages import AskedQuestion, StageUsage, Trajectory


class QuestionKind(enum.StrEnum):
    """Each may have a model, key and address of its own; the names are those of `openai_config`."""

    KEYPOINT = "keypoint_detection"
    BLOCKING = "blocking_detection"
    EVALUATION = "evaluation"


class MalformedVerdict(Exception):
    """A model's answer is no verdict; says why."""


class Unusable(NoVerdict):
    """A question was answered as often as it may be, and no answer holds a verdict."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict of a model."""

    passed: bool
    """Of key points: it is evidence; of blocking: it was blocked."""
    reasoning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """One question with everything that it takes to have it answered."""

    kind: QuestionKind
    stage: str
    """For people and accounts: `keypoint`, `blocking`, `criterion_b`, `criterion_a`, `reference`."""
    question: Question
    read: Callable[[str], Finding]
    """Raises `MalformedVerdict`."""
    screenshots: tuple[int, ...] = ()
    """Steps whose screenshots the question shows, in order."""
    vote: int = 0
    """Which of several askings of one question it is."""


class JudgeSession(Protocol):
    """Questions about one episode. May be asked several at once."""

    async def ask(self, inquiry: Inquiry) -> Finding:
        """The verdict of the first answer that holds one; asked before, it is not asked again.

        Raises:
            Unusable: no answer holds one.
            NoVerdict: none could be had.
        """
        ...

    @property
    def usage(self) -> tuple[StageUsage, ...]:
        """What the questions of this session took so far, also where an earlier worker had the answer."""
        ...

    @property
    def answered(self) -> tuple[AskedQuestion, ...]:
        """Those of them whose answers held a verdict."""
        ...


class JudgeSessions(Protocol):
    async def begin(self, trajectory: Trajectory) -> JudgeSession: ...
