"""Interviews on a bus with a model in this process: what a test asks, and how often it was asked."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio.lowlevel

from bus.ports import Bus
from bus.presence import Status
from bus.subjects import Subjects
from judges.endpoint.port import Answer, Endpoint, Question
from judges.rubric.asking import Finding, Inquiry, MalformedVerdict, QuestionKind
from judges.rubric.budget import open_budget
from judges.rubric.journal import Journal
from judges.rubric.session import RecordedSessions
from schemas.ids import WorkerId
from schemas.judge_config import JudgeConfig, OpenAIConfig
from schemas.messages import JudgeCall, Role
from tests.builders import RUN

RUBRIC = "interviewed_v1"
SUBJECTS = Subjects(RUN)
YES, NO, NEITHER = (
    Answer(text="yes", finish_reason="stop"),
    Answer(text="no", finish_reason="stop"),
    Answer(text="perhaps", finish_reason="stop"),
)


@dataclass
class Model:
    """Satisfies `judges.endpoint.port.Endpoint`."""

    reply: Callable[[str], Answer | Awaitable[Answer]]
    """To the text of a question."""
    model: str = "model-a"
    asked: list[str] = field(default_factory=list)
    max_tokens: list[int] = field(default_factory=list)

    async def ask(self, question: Question, *, max_completion_tokens: int) -> Answer:
        text = "".join(part for part in question.content if isinstance(part, str))
        self.asked.append(text)
        self.max_tokens.append(max_completion_tokens)
        await anyio.lowlevel.checkpoint()
        reply = self.reply(text)
        return reply if isinstance(reply, Answer) else await reply


def in_turn(*answers: Answer) -> Callable[[str], Answer]:
    """One after another."""
    left = iter(answers)
    return lambda _: next(left)


def read_word(text: str) -> Finding:
    if text not in ("yes", "no"):
        raise MalformedVerdict(f"{text!r} is neither yes nor no")
    return Finding(text == "yes", f"it said {text}")


def inquiry(text: str = "did it?", *, stage: str = "criterion_a", vote: int = 0) -> Inquiry:
    question = Question(system="be strict", content=(text,), schema_name="word", schema={"type": "string"})
    return Inquiry(kind=QuestionKind.EVALUATION, stage=stage, question=question, read=read_word, vote=vote)


@asynccontextmanager
async def judge_sessions(
    bus: Bus,
    model: Endpoint,
    *,
    judge: JudgeConfig | None = None,
    openai: OpenAIConfig | None = None,
    worker: str = "judge-1",
    status: Status | None = None,
    rubric: str = RUBRIC,
) -> AsyncIterator[RecordedSessions]:
    name = WorkerId(worker)
    status = status or Status(Role.JUDGE, name)
    async with open_budget(bus, SUBJECTS, judge or JudgeConfig(), status) as budget:
        yield RecordedSessions(
            endpoints=dict.fromkeys(QuestionKind, model),
            journal=Journal(bus, SUBJECTS, rubric=rubric, worker=name),
            budget=budget,
            config=openai or OpenAIConfig(),
            status=status,
        )


async def recorded(bus: Bus) -> list[JudgeCall]:
    """Everything that stands on CALLS."""
    records = await bus.history(SUBJECTS.calls, SUBJECTS.everything("call"))
    return [record.message for record in records if isinstance(record.message, JudgeCall)]
