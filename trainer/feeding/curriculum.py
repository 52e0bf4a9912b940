"""Builds what is played: admission by staleness, evaluation rounds, and the message for one episode. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.env_config import EnvConfig
from schemas.feeder_config import FeederConfig
from schemas.ids import EpisodeId, GroupId, PolicyVersion, RunName, episode_id, group_id
from schemas.messages import Split, Task
from trainer.feeding.refill import Refilled
from trainer.feeding.task_files import TaskSpec


@dataclass(frozen=True, slots=True)
class Slot:
    """One place of a schedule: which task, in which round, as which member of its group."""

    spec: TaskSpec
    index: int
    round: int
    member: int = 0
    greedy: bool = False
    results_seq: int = 0
    """See `Task.results_seq`."""


def evaluation_slots(specs: Sequence[TaskSpec], env: EnvConfig, version: PolicyVersion) -> tuple[Slot, ...]:
    """The evaluation round of a version: the first N test tasks in order (-1: all), each so often."""
    size = env.test_tasks_rollout_size
    chosen = specs if size < 0 else specs[:size]
    count = evaluation_size(specs, env)
    return tuple(
        Slot(spec, version * count + repeat * len(chosen) + position, version, repeat)
        for repeat in range(env.test_tasks_repeat_times)
        for position, spec in enumerate(chosen)
    )


def evaluation_size(specs: Sequence[TaskSpec], env: EnvConfig) -> int:
    """Episodes of a round."""
    num_tasks = len(specs) if env.test_tasks_rollout_size < 0 else min(len(specs), env.test_tasks_rollout_size)
    return num_tasks * env.test_tasks_repeat_times


def evaluation_versions(config: FeederConfig) -> tuple[PolicyVersion, ...]:
    """Versions that get an evaluation round, in order."""
    chosen = set(range(config.eval_every, config.num_iterations, config.eval_every)) if config.eval_every else set()
    chosen |= {0} if config.evaluate_first else set()
    chosen |= {config.num_iterations} if config.evaluate_last else set()
    return tuple(PolicyVersion(version) for version in sorted(chosen))


def episode_of(slot: Slot, split: Split, *, demonstrate: bool) -> EpisodeId:
    """Demonstrations have names of their own, so that they never pass for training."""
    return episode_id(group_of(slot, split, demonstrate=demonstrate), slot.member)


def group_of(slot: Slot, split: Split, *, demonstrate: bool) -> GroupId:
    return group_id("demo" if demonstrate else split.value, slot.round, slot.spec.task)


def task_of(
    slot: Slot,
    *,
    run: RunName,
    split: Split,
    env: EnvConfig,
    feeder: FeederConfig,
    version: PolicyVersion,
) -> Task:
    """The message for one slot."""
    spec, demonstrate = slot.spec, feeder.demonstrate
    caps = env.train_difficulty_max_steps if split is Split.TRAIN else env.test_difficulty_max_steps
    staged = feeder.max_steps(version) if split is Split.TRAIN else None
    return Task(
        run=run,
        episode=episode_of(slot, split, demonstrate=demonstrate),
        group=group_of(slot, split, demonstrate=demonstrate),
        task=spec.task,
        split=split,
        index=slot.index,
        policy_version=version,
        instruction=spec.instruction,
        website=spec.website,
        max_steps=staged or caps.cap(spec.difficulty),
        timeout_s=env.task_timeout_minutes * 60,
        max_unparsed=env.max_unparsed,
        domain=spec.domain,
        subdomain=spec.subdomain,
        difficulty=spec.difficulty,
        facts=spec.facts,
        reference_answer=spec.reference_answer,
        checks=spec.checks,
        demonstrate=demonstrate,
        greedy=slot.greedy,
        results_seq=slot.results_seq,
        distribution=spec.distribution,
        published_split=spec.split,
        evaluation=spec.evaluation,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """How many training episodes may be admitted (AReaL's rule).

    allowed = min(max_concurrent - running, (eta + version + 1) * batch - admitted), and never more than the run's total.

    With refill, what was used up by the version stands for version * batch, and groups without variance count as not played
    until they fill `max_refill` iterations: by then the trainer goes on without further ones, so it never waits for an
    episode that may not be admitted.
    """

    batch: int
    """Episodes that one version consumes."""
    max_concurrent: int
    staleness_bound: int | None
    """eta; None: nothing is trained, only `max_concurrent` and the total count."""
    total: int
    """Episodes of the whole run, refilled ones left out."""
    num_members: int = 1
    """Episodes of a group."""
    max_refill: float = 1.0

    def limit(self, version: int, refilled: Refilled | None = None) -> int:
        """Episodes that may have been admitted in all while `version` is served."""
        if refilled is None or self.staleness_bound is None:
            return self._wanted(version)
        return refilled.used_up + self._ahead(version) + min(refilled.in_vain, self._most_in_vain(version))

    def is_exhausted(self, version: int, refilled: Refilled) -> bool:
        """Whether no further episodes are admitted in place of those in vain."""
        return self._ahead(version) > 0 and refilled.in_vain >= self._most_in_vain(version)

    def allowed(self, *, version: int, admitted: int, running: int, refilled: Refilled | None = None) -> int:
        return max(0, min(self.max_concurrent - running, self.limit(version, refilled) - admitted))

    def _wanted(self, version: int) -> int:
        if self.staleness_bound is None:
            return self.total
        return min(self.total, (self.staleness_bound + version + 1) * self.batch)

    def _ahead(self, version: int) -> int:
        """Episodes of the iterations that follow `version` and may be played now."""
        return self._wanted(version) - min(self.total, version * self.batch)

    def _most_in_vain(self, version: int) -> int:
        groups = math.ceil((self.max_refill - 1.0) * self._ahead(version) / self.num_members)
        return groups * self.num_members


def stragglers_due(*, ended: int, batch: int, threshold: float, since_s: float | None, grace_s: float) -> bool:
    """Whether the unfinished rest of a synchronous batch is to be cancelled.

    Args:
        since_s: seconds since the threshold was reached; None: not reached yet.
    """
    return ended < batch and ended >= threshold * batch and since_s is not None and since_s >= grace_s
