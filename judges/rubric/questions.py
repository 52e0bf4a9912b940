"""One episode's questions, word for word.

Invariant: the questions of the evaluation begin with the same bytes (system, task, answer, screenshots in order) and differ in
their last text only, so that a provider reads the screenshots once; those about key points differ from their screenshot on.
Nothing untrusted stands outside the fence's markers.
"""

from collections.abc import Sequence

from judges.endpoint.port import Question
from judges.prompt_files import Prompts
from judges.rubric.evidence import SeenScreenshot
from judges.rubric.moments import told_once
from judges.rubric.untrusted import Fence, cleaned, shortened
from judges.rubric.verdicts import BLOCKING, CRITERION, KEYPOINT, VerdictForm
from schemas.messages import Fact, Screenshot, Trajectory

_Content = tuple[str | Screenshot, ...]
_ANSWER_LIMIT = 16_000
"""Characters; more than any policy's answer has tokens for."""
_TASK_LIMIT = 16_000


class Questions:
    """Writes the questions about one trajectory. `account` tells of each step."""

    def __init__(self, prompts: Prompts, fence: Fence, trajectory: Trajectory, account: Sequence[str]) -> None:
        self._prompts = prompts
        self._fence = fence
        self._trajectory = trajectory
        self._account = account

    def blocking(self, shown: Sequence[SeenScreenshot]) -> Question:
        """Without the answer: an agent's word for it must not make a failure into an episode that does not count."""
        return self._question(BLOCKING, (self._task(), *self._screenshots(shown), self._prompts.fill("blocking")))

    def keypoint(self, shot: SeenScreenshot, number: int, count: int, facts: Sequence[Fact]) -> Question:
        """About screenshot `number` of `count`, from 1."""
        listed = "\n".join(f"- {self._fact(fact)}" for fact in facts)
        before = (self._task(), self._prompts.fill("facts", facts=listed), self._answer())
        return self._question(KEYPOINT, (*before, *self._screenshot(shot, number, count), self._prompts.fill("keypoint")))

    def criterion_b(self, shown: Sequence[SeenScreenshot]) -> Question:
        return self._evaluation(shown, self._prompts.fill("criterion_b"))

    def criterion_a(self, shown: Sequence[SeenScreenshot], fact: Fact) -> Question:
        asked = self._prompts.fill(
            "criterion_a",
            fact=self._written(fact.description),
            group=self._written(fact.group) or "no group",
            difficulty=str(fact.difficulty),
        )
        return self._evaluation(shown, asked)

    def reference(self, shown: Sequence[SeenScreenshot], reference: str) -> Question:
        return self._evaluation(shown, self._prompts.fill("reference", reference=self._written(reference)))

    def _evaluation(self, shown: Sequence[SeenScreenshot], asked: str) -> Question:
        return self._question(CRITERION, (self._task(), self._answer(), *self._screenshots(shown), asked))

    def _question(self, form: VerdictForm, content: _Content) -> Question:
        system = self._prompts.fill("system")
        return Question(system=system, content=content, schema_name=form.name, schema=form.schema)

    def _task(self) -> str:
        task = self._trajectory.task
        return self._prompts.fill(
            "task",
            opening=self._fence.opening,
            closing=self._fence.closing,
            instruction=self._written(task.instruction),
            website=self._written(task.website),
            difficulty=str(task.difficulty),
        )

    def _answer(self) -> str:
        answer = shortened(cleaned(self._trajectory.answer), _ANSWER_LIMIT)
        return self._prompts.fill("answer", answer=self._fence.block(answer))

    def _screenshots(self, shown: Sequence[SeenScreenshot]) -> _Content:
        pairs = (self._screenshot(shot, number, len(shown)) for number, shot in enumerate(shown, 1))
        return tuple(part for pair in pairs for part in pair)

    def _screenshot(self, shot: SeenScreenshot, number: int, count: int) -> tuple[str, Screenshot]:
        told = told_once([self._account[step] for step in shot.steps])
        label = self._prompts.fill("screenshot", number=str(number), count=str(count), account=self._fence.block(told))
        return label, shot.screenshot

    def _fact(self, fact: Fact) -> str:
        group = f" (belongs to: {self._written(fact.group)})" if fact.group else ""
        return f"{self._written(fact.description)}{group}"

    def _written(self, text: str) -> str:
        """Of the task's author, on one line: he is trusted, but the markers stay ours."""
        return self._fence.plain(shortened(" ".join(text.split()), _TASK_LIMIT))
