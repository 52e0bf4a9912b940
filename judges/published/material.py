"""Writes the parts of a published evaluator's questions.

Invariant: nothing that a page, the policy or a model wrote stands outside the fence's markers, but what a model drew up from
the task's instruction alone.
"""

from collections.abc import Iterable, Sequence

from judges.prompt_files import Prompts
from judges.rubric.evidence import SeenScreenshot
from judges.rubric.untrusted import Fence, cleaned, shortened
from schemas.messages import Screenshot, Trajectory

Content = tuple[str | Screenshot, ...]
_ANSWER_LIMIT = 16_000
_TASK_LIMIT = 16_000


class Material:
    """Of one trajectory. Which files of the prompts there are is its judge's."""

    def __init__(self, prompts: Prompts, fence: Fence, trajectory: Trajectory) -> None:
        self._prompts = prompts
        self._fence = fence
        self._trajectory = trajectory

    @property
    def instruction(self) -> str:
        return self.written(self._trajectory.task.instruction)

    @property
    def has_answer(self) -> bool:
        return bool(cleaned(self._trajectory.answer).strip())

    def text(self, name: str, **values: str) -> str:
        """A file of the prompts; values are our own words, or went through one of the methods below."""
        return self._prompts.fill(name, **values)

    def task(self, **values: str) -> str:
        """The two markers of untrusted text, the instruction unless another is given, and what else the file has room for."""
        marks = {"opening": self._fence.opening, "closing": self._fence.closing}
        return self.text("task", **{**marks, "instruction": self.instruction, **values})

    def answer(self) -> str:
        return self.text("answer", answer=self.quoted(shortened(cleaned(self._trajectory.answer), _ANSWER_LIMIT)))

    def quoted(self, text: str) -> str:
        """What pages, policies or models wrote."""
        return self._fence.block(text)

    def written(self, text: str) -> str:
        """What the task's author wrote, or a model from that alone, on one line: the markers stay ours."""
        return self._fence.plain(shortened(" ".join(text.split()), _TASK_LIMIT))

    def listed(self, texts: Iterable[str]) -> str:
        return "\n".join(f"{number}. {self.written(text)}" for number, text in enumerate(texts, 1))

    def screenshots(self, shown: Sequence[SeenScreenshot]) -> Content:
        """Each behind a line that says which it is."""
        labels = (
            f"Screenshot {number} of {len(shown)}, taken before step {shot.step}:" for number, shot in enumerate(shown, 1)
        )
        return tuple(part for label, shot in zip(labels, shown, strict=True) for part in (label, shot.screenshot))
