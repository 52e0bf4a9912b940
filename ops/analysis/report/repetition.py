"""Counts repetition: of sites and tasks over a run, of pages and actions within an episode."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ops.analysis.report.episode import ReportedEpisode
from ops.archive.exports.played import PlayedStep
from ops.statistics.shares import Share
from schemas.messages import Action, Observation

TOP = 10


@dataclass(frozen=True, slots=True)
class Repeats:
    """Of one episode."""

    num_steps: int = 0
    num_moves: int = 0
    """Actions that led to another address."""
    num_returns: int = 0
    """Those that led to an address where the episode had been before."""
    num_same_actions: int = 0
    """Steps that did exactly what the step before did."""
    num_redone: int = 0
    """Steps that did what had been done at the same address before: the mark of a loop."""
    num_unchanged: int = 0
    """Steps that left the screenshot as it was."""


def repeats_of(steps: Sequence[PlayedStep], last_seen: Observation | None) -> Repeats:
    """Answers that could not be parsed are no action and repeat nothing."""
    addresses = [step.observation.url for step in steps]
    if last_seen is not None:
        addresses.append(last_seen.url)
    seen = set(addresses[:1])
    moves = returns = 0
    for before, after in pairwise(addresses):
        if before != after:
            moves += 1
            returns += after in seen
        seen.add(after)
    actions = [step.request.actions if step.request.parsed else None for step in steps]
    done: set[tuple[str, tuple[Action, ...]]] = set()
    redone = 0
    for address, action in zip(addresses, actions, strict=False):
        if action is not None:
            redone += (address, action) in done
            done.add((address, action))
    return Repeats(
        num_steps=len(steps),
        num_moves=moves,
        num_returns=returns,
        num_same_actions=sum(one is not None and one == other for one, other in pairwise(actions)),
        num_redone=redone,
        num_unchanged=sum(step.changed_nothing for step in steps),
    )


@dataclass(slots=True)
class RepeatSums:
    """Over the episodes whose steps are all still stored."""

    num_episodes: int = 0
    num_with_return: int = 0
    num_with_redone: int = 0
    num_steps: int = 0
    num_moves: int = 0
    num_returns: int = 0
    num_same_actions: int = 0
    num_redone: int = 0
    num_unchanged: int = 0

    def add(self, repeats: Repeats) -> None:
        self.num_episodes += 1
        self.num_with_return += repeats.num_returns > 0
        self.num_with_redone += repeats.num_redone > 0
        for name in Repeats.__slots__:
            setattr(self, name, getattr(self, name) + getattr(repeats, name))

    def shares(self) -> dict[str, Share]:
        return {
            "episodes that went back to a page": Share(self.num_with_return, self.num_episodes),
            "episodes that did the same on a page again": Share(self.num_with_redone, self.num_episodes),
            "moves that led back to a page": Share(self.num_returns, self.num_moves),
            "steps that repeated the step before": Share(self.num_same_actions, self.num_steps),
            "steps done before on the same page": Share(self.num_redone, self.num_steps),
            "steps that changed nothing to see": Share(self.num_unchanged, self.num_steps),
        }


@dataclass(slots=True)
class Repetition:
    """Within episodes, by how they ended: success, failure, or no verdict."""

    by_end: dict[str, RepeatSums] = field(default_factory=dict)
    tasks: dict[str, int] = field(default_factory=dict)
    """Episodes of each task."""

    def add(self, one: ReportedEpisode) -> None:
        self.tasks[one.task.task] = self.tasks.get(one.task.task, 0) + 1
        if not one.is_whole:
            return
        scored = one.score
        end = "no verdict" if scored is None else "success" if scored.success else "failure"
        self.by_end.setdefault(end, RepeatSums()).add(repeats_of(one.steps, one.last_seen))


def share_of_top(counts: Collection[int], top: int = TOP) -> Share:
    """What the most frequent ones have of all."""
    return Share(sum(sorted(counts, reverse=True)[:top]), sum(counts))


def gini(counts: Collection[int]) -> float | None:
    """How unevenly visits spread: 0 where all are visited alike, near 1 where one has nearly all.

    With counts x sorted from the smallest: sum((2i - n - 1) x_i) / (n sum(x)).
    Source: C. Gini, Variabilita e mutabilita (1912), in the form for sorted values.
    """
    n, whole = len(counts), sum(counts)
    if not whole:
        return None
    return sum((2 * place - n - 1) * count for place, count in enumerate(sorted(counts), 1)) / (n * whole)
