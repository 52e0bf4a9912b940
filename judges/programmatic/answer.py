"""Judges that compare a policy's answer with the task's reference answer, and look at nothing else."""

from typing import ClassVar

from judges.episode import JudgedEpisode
from judges.judge import Ruling, scored
from judges.programmatic.checks import evaluate
from judges.programmatic.numbers import numbers_of
from schemas.errors import NoVerdict
from schemas.messages import Check, CheckKind, CheckMatch, StageVerdict, Task

STAGE = "answer"
_OR = "|OR|"
"""Stands between answers any of which will do, as in WebArena's references; a plain `or` may be part of an answer."""


class AnswerJudge:
    """Success when the answer is one of the reference's alternatives, in the sense of `match`; failure without an answer.

    A number is compared with the first one in the answer; the reference must hold exactly one, units around it do not count.
    """

    name: str
    match: ClassVar[CheckMatch]

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        """Raises `NoVerdict` when the task has no reference answer, or none that can be compared so."""
        trajectory = episode.trajectory
        check = Check(CheckKind.ANSWER, self._expected(trajectory.task), self.match)
        (found,) = evaluate((check,), trajectory.answer, None)
        return scored(passed=found.passed, stages=(StageVerdict(STAGE, found.passed, found.reasoning),))

    def _expected(self, task: Task) -> tuple[str, ...]:
        alternatives = tuple(text.strip() for text in (task.reference_answer or "").split(_OR) if text.strip())
        if not alternatives:
            raise NoVerdict(
                f"{self.name} needs a reference answer, which task {task.task} has not: add its definite_answer, "
                "or use another judge"
            )
        if self.match is not CheckMatch.NUMBER:
            return alternatives
        return tuple(repr(_only_number(text, task)) for text in alternatives)


def _only_number(text: str, task: Task) -> float:
    numbers = numbers_of(text)
    if len(numbers) != 1:
        raise NoVerdict(
            f'the reference answer "{text}" of task {task.task} holds {len(numbers)} numbers: '
            "write one, or use answer_exact_v1"
        )
    return numbers[0]
