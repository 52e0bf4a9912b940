"""An sessions without bus, journal and budget: the baseline of the one that records."""

from collections.abc import Callable, Mapping

from judges.endpoint.port import Answer, Endpoint
from judges.rubric.asking import Finding, Inquiry
from schemas.messages import AskedQuestion, StageUsage, Trajectory


class Unrecorded:
    """Puts each question once, records nothing. An sessions, and its session about every trajectory.

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

    @property
    def answered(self) -> tuple[AskedQuestion, ...]:
        return ()


def hoped_for(inquiry: Inquiry, _: Answer) -> Finding:
    """As if everything held, whatever the model said."""
    return Finding(passed=inquiry.stage != "blocking", reasoning="")
