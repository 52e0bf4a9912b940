"""Builds predicates of records from a reader's filters. Split and episode are selected by subject already."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import TypeVar

from schemas.errors import ConfigurationError
from schemas.messages import Judgement, Outcome, Trajectory, Verdict

E = TypeVar("E", bound=Enum)


def choice(kind: type[E], value: E | str) -> E:
    """Raises `ConfigurationError`, which names the valid values."""
    try:
        return kind(value)
    except ValueError as error:
        valid = ", ".join(str(member.value) for member in kind)
        raise ConfigurationError(f"{kind.__name__.lower()} {value!r} does not exist: write one of {valid}") from error


def choices(kind: type[E], values: E | str | Iterable[E | str]) -> frozenset[E]:
    """One value or several; empty means all of them."""
    several = (values,) if isinstance(values, str | Enum) else tuple(values)
    return frozenset(choice(kind, value) for value in several) or frozenset(kind)


def version_range(version: int | range | None) -> range | None:
    return range(version, version + 1) if isinstance(version, int) else version


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSelection:
    """What is asked of a finished episode."""

    outcomes: frozenset[Outcome] = frozenset(Outcome)
    website: str | None = None
    """As in the task, or a pattern with `*`."""
    task: str | None = None
    versions: range | None = None
    """Holds the policy version of every step."""

    def accepts(self, trajectory: Trajectory) -> bool:
        task = trajectory.task
        played_by = trajectory.versions or (task.policy_version,)
        return (
            trajectory.outcome in self.outcomes
            and (self.website is None or task.website == self.website or fnmatchcase(task.website, self.website))
            and (self.task is None or task.task == self.task)
            and (self.versions is None or all(version in self.versions for version in played_by))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRange:
    """Both ends belong to it. When an end is given, a missing reward is outside."""

    low: float | None = None
    high: float | None = None

    def accepts(self, reward: float | None) -> bool:
        if self.low is None and self.high is None:
            return True
        if reward is None:
            return False
        return (self.low is None or reward >= self.low) and (self.high is None or reward <= self.high)


def of_trajectories(selection: EpisodeSelection, rewards: RewardRange) -> Callable[[Trajectory], bool]:
    return lambda trajectory: selection.accepts(trajectory) and rewards.accepts(trajectory.environment_reward)


def of_judgements(
    selection: EpisodeSelection, rewards: RewardRange, verdicts: frozenset[Verdict]
) -> Callable[[Judgement], bool]:
    return lambda judgement: (
        judgement.verdict in verdicts and rewards.accepts(judgement.reward) and selection.accepts(judgement.trajectory)
    )
