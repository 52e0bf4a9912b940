"""What to play next: sampling, admission by staleness, and evaluation rounds. Pure: values in, values out.

The schedule is a function of (seed, index) alone, so a feeder that takes over continues exactly where the last one stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from schemas.config import EnvConfig, FeederConfig
from schemas.ids import EpisodeId, GroupId, PolicyVersion, RunName, episode_id, group_id
from schemas.messages import Split, Task
from trainer.task_files import TaskSpec


@dataclass(frozen=True, slots=True)
class Slot:
    """One place of a schedule: which task, in which round, as which member of its group."""

    spec: TaskSpec
    index: int
    round: int
    member: int = 0


@dataclass(frozen=True)
class UniformSampler:
    """Draws without replacement from the whole file; every round is shuffled anew.

    Example: with 3 tasks, indices 0-2 are one order of them, indices 3-5 another.
    """

    specs: tuple[TaskSpec, ...]
    seed: int

    def slot(self, index: int) -> Slot:
        round_index, position = divmod(index, len(self.specs))
        order = _permutation(self.seed, round_index, len(self.specs))
        return Slot(self.specs[int(order[position])], index, round_index)


@lru_cache(maxsize=4)
def _permutation(seed: int, round_index: int, size: int) -> np.ndarray:
    return np.random.default_rng((seed, round_index)).permutation(size)


def evaluation_slots(specs: Sequence[TaskSpec], env: EnvConfig, version: PolicyVersion) -> tuple[Slot, ...]:
    """The evaluation round of a version: the first N test tasks in order (-1: all), each so often."""
    size = env.test_tasks_rollout_size
    chosen = specs if size < 0 else specs[:size]
    count = len(chosen) * env.test_tasks_repeat_times
    return tuple(
        Slot(spec, version * count + repeat * len(chosen) + position, version, repeat)
        for repeat in range(env.test_tasks_repeat_times)
        for position, spec in enumerate(chosen)
    )


def evaluation_versions(config: FeederConfig) -> tuple[PolicyVersion, ...]:
    """Versions that get an evaluation round, in order."""
    chosen = set(range(config.eval_every, config.num_iterations, config.eval_every)) if config.eval_every else set()
    chosen |= {0} if config.evaluate_first else set()
    chosen |= {config.num_iterations} if config.evaluate_last else set()
    return tuple(PolicyVersion(version) for version in sorted(chosen))


def episode_of(slot: Slot, split: Split, *, demonstrate: bool) -> EpisodeId:
    """Demonstrations have names of their own, so that they never pass for training."""
    return episode_id(_group_of(slot, split, demonstrate), slot.member)


def _group_of(slot: Slot, split: Split, demonstrate: bool) -> GroupId:
    return group_id("demo" if demonstrate else split.value, slot.round, slot.spec.task)


def task_of(slot: Slot, *, run: RunName, split: Split, env: EnvConfig, version: PolicyVersion, demonstrate: bool) -> Task:
    """The message for one slot."""
    spec = slot.spec
    caps = env.train_difficulty_max_steps if split is Split.TRAIN else env.test_difficulty_max_steps
    return Task(
        run=run,
        episode=episode_of(slot, split, demonstrate=demonstrate),
        group=_group_of(slot, split, demonstrate),
        task=spec.task,
        split=split,
        index=slot.index,
        policy_version=version,
        instruction=spec.instruction,
        website=spec.website,
        max_steps=caps.cap(spec.difficulty),
        timeout_s=env.task_timeout_minutes * 60,
        domain=spec.domain,
        subdomain=spec.subdomain,
        difficulty=spec.difficulty,
        facts=spec.facts,
        reference_answer=spec.reference_answer,
        checks=spec.checks,
        demonstrate=demonstrate,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """How many training episodes may be admitted (AReaL's rule).

    allowed = min(max_concurrent - running, (eta + version + 1) * batch - admitted), and never more than the run's total.
    """

    batch: int
    """Episodes that one version consumes."""
    max_concurrent: int
    staleness_bound: int | None
    """eta; None: nothing is trained, only `max_concurrent` and the total count."""
    total: int
    """Episodes of the whole run."""

    def limit(self, version: int) -> int:
        """Episodes that may have been admitted in all while `version` is served."""
        if self.staleness_bound is None:
            return self.total
        return min(self.total, (self.staleness_bound + version + 1) * self.batch)

    def allowed(self, *, version: int, admitted: int, running: int) -> int:
        return max(0, min(self.max_concurrent - running, self.limit(version) - admitted))


def stragglers_due(*, ended: int, batch: int, threshold: float, since_s: float | None, grace_s: float) -> bool:
    """Whether the unfinished rest of a synchronous batch is to be cancelled.

    Args:
        since_s: seconds since the threshold was reached; None: not reached yet.
    """
    return ended < batch and ended >= threshold * batch and since_s is not None and since_s >= grace_s
