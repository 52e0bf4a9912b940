"""Which training slots come next, those of blocked sites left out. Pure.

Rounds follow each other; in a round every task stands once, all members of its group one after the other. What a round holds
depends on the seed alone or, where the sampler adapts, on the results up to a sequence on JUDGED that is fixed when the
round is begun: every task of it carries that number, so a feeder that takes over draws the same round.

Whether a site is blocked is asked when the turn of a group comes. A group that was begun is finished; one that is skipped is
skipped for good: its task comes again in a later round, and a site that is free again gets no flood of what it missed.
"""

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from bus.fault import Fault
from schemas.errors import ConfigurationError
from schemas.ids import EpisodeId, GroupId, TaskId
from schemas.messages import Split
from trainer.feeding.attempts import Attempts
from trainer.feeding.curriculum import Slot, episode_of, group_of
from trainer.feeding.samplers import Levels, Sampler
from trainer.feeding.task_files import TaskSpec

_NO_SEQS: Mapping[int, int] = MappingProxyType({})
_LOOK_AT_ONCE = 10_000
_LOOKED_AT_AGAIN = 256
"""Admissions before the newest among which a feeder that was killed may have left out some: it admits several at once."""


@dataclass(frozen=True, slots=True)
class _Place:
    index: int = 0
    round: int = 0
    position: int = 0
    """Of the task in the round."""
    member: int = 0


class TrainingSchedule:
    """Stands at a place of an endless order."""

    def __init__(
        self,
        sampler: Sampler,
        specs: Sequence[TaskSpec],
        sites: Mapping[TaskId, str],
        attempts: Attempts,
        *,
        num_members: int = 1,
        greedy_last: bool = False,
        demonstrate: bool = False,
    ) -> None:
        """
        Args:
            specs: all tasks that the sampler draws from, with their `sites`.
            attempts: what is known of results at any moment; looked at when a round is begun.
            num_members: episodes of a group.
            greedy_last: the last of them is decoded greedily.
        """
        self._sampler = sampler
        self._specs = specs
        self._sites = sites
        self._attempts = attempts
        self._num_members = num_members
        self._greedy_last = greedy_last
        self._demonstrate = demonstrate
        self._place = _Place()
        self._begun: GroupId | None = None
        self._seqs: dict[int, int] = {}
        """By round: the sequence that its levels are as of."""
        self._drawn: tuple[int, tuple[TaskSpec, ...]] = (-1, ())
        """The latest round that was looked at."""

    @property
    def adapts(self) -> bool:
        """Whether results decide what is drawn."""
        return self._sampler.adapts

    def resume(self, admitted: Collection[EpisodeId], seqs: Mapping[int, int] = _NO_SEQS) -> None:
        """Goes to where a feeder stood that had admitted these, short of its last admissions.

        `seqs`: `Task.results_seq` by round, of the rounds that have an admitted episode; only where the sampler adapts.
        """
        self._seqs = dict(seqs)
        found: list[_Place] = []
        place, patience = _Place(), 2 * len(self._specs) * self._num_members
        while len(found) < len(admitted) and place.index - (found[-1].index if found else 0) <= patience:
            if self._episode(self._slot(place)) in admitted:
                found.append(place)
            place = self._after(place)
        # What was drawn on the way for rounds of which nothing is admitted binds nobody.
        self._seqs, self._drawn = dict(seqs), (-1, ())
        self._place = self._after(found[-_LOOKED_AT_AGAIN - 1]) if len(found) > _LOOKED_AT_AGAIN else _Place()

    def take(self, count: int, *, admitted: Container[EpisodeId], blocked: Container[str]) -> list[Slot]:
        """At most `count` slots; fewer, or none, when many in a row are of blocked sites: the rest comes the next time."""
        slots: list[Slot] = []
        for _ in range(_LOOK_AT_ONCE):
            if len(slots) == count:
                break
            slot = self._slot(self._place)
            if self._episode(slot) not in admitted and self._is_due(slot, admitted, blocked):
                slots.append(slot)
                self._begun = self._group(slot)
            self._place = self._after(self._place)
        return slots

    def _slot(self, place: _Place) -> Slot:
        spec = self._round(place.round)[place.position]
        greedy = self._greedy_last and place.member == self._num_members - 1
        return Slot(spec, place.index, place.round, place.member, greedy=greedy, results_seq=self._seqs.get(place.round, 0))

    def _after(self, place: _Place) -> _Place:
        if place.member + 1 < self._num_members:
            return replace(place, index=place.index + 1, member=place.member + 1)
        if place.position + 1 < len(self._round(place.round)):
            return _Place(index=place.index + 1, round=place.round, position=place.position + 1)
        return _Place(index=place.index + 1, round=place.round + 1)

    def _round(self, index: int) -> tuple[TaskSpec, ...]:
        if self._drawn[0] != index:
            levels: Levels = {}
            if self._sampler.adapts:
                seq = self._seqs.setdefault(index, self._attempts.last_seq)
                levels = self._attempts.levels(self._specs, seq)
            self._drawn = (index, self._draw(index, levels))
        return self._drawn[1]

    def _draw(self, index: int, levels: Levels) -> tuple[TaskSpec, ...]:
        """Raises `ConfigurationError` for a sampler that cannot do it: it would not do it at the next start either."""
        try:
            drawn = tuple(self._sampler.round(index, levels))
        except Exception as error:
            raise ConfigurationError(
                f"{type(self._sampler).__name__}, the sampler of training tasks, could not draw round {index}: "
                f"{Fault.of(error)}; mend it, or choose another with env_config.train_tasks_sampler"
            ) from error
        names = [spec.task for spec in drawn]
        if not names or len(set(names)) < len(names) or not self._sites.keys() >= set(names):
            raise ConfigurationError(
                f"{type(self._sampler).__name__}, the sampler of training tasks, drew {len(names)} tasks for round {index}: "
                "write at least one, each once, of those it was given"
            )
        return drawn

    def _is_due(self, slot: Slot, admitted: Container[EpisodeId], blocked: Container[str]) -> bool:
        is_free = slot.member == 0 and self._sites[slot.spec.task] not in blocked
        return is_free or self._is_begun(slot, admitted)

    def _is_begun(self, slot: Slot, admitted: Container[EpisodeId]) -> bool:
        """Whether any member of the slot's group has been taken, by this feeder or one before it."""
        members = (replace(slot, member=member) for member in range(self._num_members))
        return self._group(slot) == self._begun or any(self._episode(member) in admitted for member in members)

    def _group(self, slot: Slot) -> GroupId:
        return group_of(slot, Split.TRAIN, demonstrate=self._demonstrate)

    def _episode(self, slot: Slot) -> EpisodeId:
        return episode_of(slot, Split.TRAIN, demonstrate=self._demonstrate)
