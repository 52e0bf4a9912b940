"""How often training tasks were tried and solved, as the judgements say. Pure.

Invariant: the levels as of a sequence on JUDGED are a function of the judgements up to it, whoever computes them and whenever.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from schemas.ids import GroupId, TaskId
from schemas.messages import Judgement
from trainer.feeding.task_files import TaskSpec
from trainer.scores import score

HIGHEST_LEVEL = 5


@dataclass(frozen=True, slots=True)
class _Result:
    seq: int
    task: TaskId
    group: GroupId
    success: bool


@dataclass
class Attempts:
    """A group is one attempt: solved when all of its episodes that have a verdict succeeded, else failed."""

    last_seq: int = 0
    """Of everything that was added."""
    _results: list[_Result] = field(default_factory=list)

    def add(self, seq: int, judgement: Judgement) -> None:
        """Takes a training judgement in, each once and in the order of the stream."""
        self.last_seq = max(self.last_seq, seq)
        if (scored := score(judgement)) is not None:
            self._results.append(_Result(seq, judgement.trajectory.task.task, judgement.group, scored.success))

    def levels(self, specs: Iterable[TaskSpec], through_seq: int) -> dict[TaskId, int]:
        """Of every task: its file's `attempt_level` and the failed attempts since, at most 5; 5 when it was solved."""
        groups: dict[tuple[TaskId, GroupId], bool] = {}
        for result in self._results:
            if result.seq <= through_seq:
                key = (result.task, result.group)
                groups[key] = groups.get(key, True) and result.success
        solved = {task for (task, _), success in groups.items() if success}
        failures = Counter(task for (task, _), success in groups.items() if not success)
        return {
            spec.task: HIGHEST_LEVEL if spec.task in solved else min(HIGHEST_LEVEL, spec.attempt_level + failures[spec.task])
            for spec in specs
        }
