"""Two other ways to put the judge's questions, as baselines."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from judges.endpoint.port import Answer, Endpoint, Question
from judges.rubric.stages import Stage, StageKind, required_stages
from schemas.messages import Task


class QuestionFirst:
    """What is asked stands before the screenshots, so that two questions about the same screenshots begin differently.

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
    assert kinds == (StageKind.BLOCKING, StageKind.ANSWER, StageKind.KEYPOINT), kinds
    return (keypoints, blocking, *evaluation)
