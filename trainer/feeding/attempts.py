"""Counts how often training tasks were tried and solved, as the judgements say. Pure.

Invariant: the levels are a function of the judgements that were added, whoever adds them and however often the memory was
written and read in between. Tasks are divided into parts, so that what changes can be written without the rest.
"""

import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from schemas.ids import GroupId, TaskId
from schemas.messages import GroupResult, Judgement, TaskResults
from trainer.feeding.task_files import TaskSpec
from trainer.scores import score

HIGHEST_LEVEL = 5
NUM_PARTS = 64


@dataclass(frozen=True, slots=True)
class TaskHistory:
    """What became of a task so far."""

    level: int = 0
    """Its file's `attempt_level` and the failed attempts since, at most 5; 5 when it was solved."""
    pass_rate: float | None = None
    """Share of an attempt's episodes that succeeded, of late: each attempt counts half of all before it. None: no attempt."""
    age: int = 0
    """Tasks whose latest attempt ended later than this one's."""


@dataclass
class _Part:
    seq: int = 0
    changed: bool = False
    solved: set[TaskId] = field(default_factory=set)
    failures: Counter[TaskId] = field(default_factory=Counter)
    pass_rates: dict[TaskId, float] = field(default_factory=dict)
    attempted: dict[TaskId, int] = field(default_factory=dict)
    open: dict[GroupId, GroupResult] = field(default_factory=dict)

    def close(self, result: GroupResult) -> None:
        share = result.num_solved / result.num_scored
        self.pass_rates[result.task] = (self.pass_rates.get(result.task, share) + share) / 2
        self.attempted[result.task] = self.seq
        if result.success:
            self.solved.add(result.task)
            self.failures.pop(result.task, None)
        elif result.task not in self.solved:
            self.failures[result.task] += 1


@dataclass
class Attempts:
    """A group is one attempt: solved when all of its episodes that have a verdict succeeded, else failed."""

    num_members: int = 1
    last_seq: int = 0
    """Of everything that was added."""
    _parts: dict[int, _Part] = field(default_factory=dict)

    def add(self, seq: int, judgement: Judgement) -> None:
        """Takes a training judgement in, in the order of the stream; what is known already is passed over."""
        self.last_seq = max(self.last_seq, seq)
        task, group = judgement.trajectory.task.task, judgement.group
        part = self._parts.setdefault(_part_of(task), _Part())
        if seq <= part.seq:
            return
        part.seq, part.changed = seq, True
        scored = score(judgement)
        before = part.open.pop(group, GroupResult(group, task, True, 0, 0))
        result = GroupResult(
            group,
            task,
            success=before.success and (scored is None or scored.success),
            num_judged=before.num_judged + 1,
            num_scored=before.num_scored + (scored is not None),
            num_solved=before.num_solved + (scored is not None and scored.success),
        )
        if result.num_judged < self.num_members:
            part.open[group] = result
        elif result.num_scored:
            part.close(result)

    def history(self, specs: Iterable[TaskSpec]) -> dict[TaskId, TaskHistory]:
        """Of every task. Levels know of attempts under way too."""
        under_way = [result for part in self._parts.values() for result in part.open.values() if result.num_scored]
        solved = {result.task for result in under_way if result.success}
        failures = Counter(result.task for result in under_way if not result.success)
        rates: dict[TaskId, float] = {}
        attempted: dict[TaskId, int] = {}
        for part in self._parts.values():
            solved |= part.solved
            failures += part.failures
            rates |= part.pass_rates
            attempted |= part.attempted
        ages = {task: age for age, task in enumerate(sorted(attempted, key=attempted.__getitem__, reverse=True))}
        return {
            spec.task: TaskHistory(
                HIGHEST_LEVEL if spec.task in solved else min(HIGHEST_LEVEL, spec.attempt_level + failures[spec.task]),
                rates.get(spec.task),
                ages.get(spec.task, 0),
            )
            for spec in specs
        }

    def changed(self) -> list[TaskResults]:
        """The parts that were not taken out since they last changed."""
        taken = [_memory(number, part) for number, part in self._parts.items() if part.changed]
        for part in self._parts.values():
            part.changed = False
        return taken

    def restore(self, results: TaskResults) -> None:
        """Takes in what was written before."""
        self._parts[results.part] = _Part(
            seq=results.seq,
            solved=set(results.solved),
            failures=Counter(results.failures),
            pass_rates=dict(results.pass_rates),
            attempted=dict(results.attempted),
            open={result.group: result for result in results.open},
        )
        self.last_seq = max(self.last_seq, results.seq)


def _part_of(task: TaskId) -> int:
    return zlib.crc32(task.encode()) % NUM_PARTS


def _memory(number: int, part: _Part) -> TaskResults:
    return TaskResults(
        part=number,
        seq=part.seq,
        solved=tuple(sorted(part.solved)),
        failures=dict(sorted(part.failures.items())),
        pass_rates=dict(sorted(part.pass_rates.items())),
        attempted=dict(sorted(part.attempted.items())),
        open=tuple(part.open.values()),
    )
