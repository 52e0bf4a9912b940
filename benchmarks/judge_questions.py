"""Two other ways to put the judge's questions, as baselines, and an interviewer without bus, journal and budget."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from judges.endpoint.port import Answer, Endpoint, Question
from judges.rubric.asking import Finding, Inquiry
from judges.rubric.stages import Stage, StageKind, required_stages
from schemas.messages import StageUsage, Task, Trajectory


class QuestionFirst:
    """What is asked stands before the pictures, so that two questions about the same pictures begin differently.

    Satisfies `judges.endpoint.port.Endpoint`.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    @property
    def model(self) -> str:
        return self._endpoint.model

    async def ask(self, question: Question, *, max_completion_tokens: int) -> Answer:
        *before, asked = question.content
        turned = replace(question, content=(asked, *before))
        return await self._endpoint.ask(turned, max_completion_tokens=max_completion_tokens)


@contextmanager
def webgym_order() -> Iterator[None]:
    """Within it the rubric judge asks in WebGym's order: key points before blocking, and no look for an answer."""
    with patch("judges.rubric.judge.required_stages", _webgym_stages):
        yield


def _webgym_stages(task: Task) -> tuple[Stage, ...]:
    blocking, answer, keypoints, *evaluation = required_stages(task)
    kinds = (blocking.kind, answer.kind, keypoints.kind)
    assert kinds == (StageKind.BLOCKING, StageKind.ANSWER, StageKind.KEYPOINTS), kinds
    return (keypoints, blocking, *evaluation)


class Unrecorded:
    """Puts each question once, records nothing. An interviewer, and its interview about every trajectory.

    `finding` says what an answer is taken for; by default it is what the judge reads in it.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        *,
        max_completion_tokens: int,
        finding: Callable[[Inquiry, Answer], Finding] = lambda inquiry, answer: inquiry.read(answer.text),
    ) -> None:
        self._endpoints = endpoints
        self._max_completion_tokens = max_completion_tokens
        self._finding = finding
        self.answers: list[tuple[Inquiry, Answer]] = []

    async def begin(self, trajectory: Trajectory) -> "Unrecorded":
        return self

    async def ask(self, inquiry: Inquiry) -> Finding:
        endpoint = self._endpoints[inquiry.kind]
        answer = await endpoint.ask(inquiry.question, max_completion_tokens=self._max_completion_tokens)
        self.answers.append((inquiry, answer))
        return self._finding(inquiry, answer)

    @property
    def usage(self) -> tuple[StageUsage, ...]:
        return ()


def hoped_for(inquiry: Inquiry, _: Answer) -> Finding:
    """As if everything held, whatever the model said."""
    return Finding(passed=inquiry.stage != "blocking", reasoning="")
