"""Schedules the next training slots, those of blocked sites left out. Pure.

Rounds follow each other; in a round every task stands once, all members of its group one after the other. What a round holds
depends on the seed alone or, where the sampler adapts, on the results that are known when the round is begun: it is remembered
as drawn, so a feeder that takes over goes on with the same round.

Whether a site is blocked is asked when the turn of a group comes. A group that was begun is finished; one that is skipped is
skipped for good: its task comes again in a later round, and a site that is free again gets no flood of what it missed.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from bus.fault import Fault
from schemas.errors import ConfigurationError
from schemas.ids import GroupId, TaskId
from schemas.messages import SchedulePlace, Split
from trainer.feeding.attempts import Attempts
from trainer.feeding.curriculum import Slot, group_of
from trainer.feeding.samplers import History, Sampler
from trainer.feeding.task_files import TaskSpec

_LOOK_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class _Place:
    index: int = 0
    round: int = 0
    position: int = 0
    """Of the task in the round."""
    member: int = 0


@dataclass(frozen=True, slots=True)
class _Drawn:
    round: int = -1
    specs: tuple[TaskSpec, ...] = ()
    results_seq: int = 0
    """On JUDGED: what decided on the round, where the sampler adapts."""


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
        order: str = "the only one",
    ) -> None:
        """
        Args:
            specs: all tasks that the sampler draws from, with their `sites`.
            attempts: what is known of results at any moment; looked at when a round is begun.
            num_members: episodes of a group.
            greedy_last: the last of them is decoded greedily.
            order: names what the order is drawn of.
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
        self._order = order
        self._drawn = _Drawn()
        """The latest round that was looked at."""

    @property
    def adapts(self) -> bool:
        """Whether results decide what is drawn."""
        return self._sampler.adapts

    def resume(self, memory: SchedulePlace) -> None:
        """Goes to where a feeder stood. Where the order was drawn of something else, the next round begins: no name of a group
        comes again."""
        if memory.order == self._order:
            self._place = _Place(memory.index, memory.round, memory.position, memory.member)
            self._begun = memory.begun or None
        elif memory.order:
            self._place = _Place(index=memory.index, round=memory.round + 1)
        if memory.order == self._order and memory.drawn:
            by_name = {spec.task: spec for spec in self._specs}
            self._drawn = _Drawn(memory.round, tuple(by_name[task] for task in memory.drawn), memory.results_seq)

    def memory(self) -> SchedulePlace:
        """Where it stands, for whoever takes over."""
        place, drawn = self._place, self._drawn
        kept = drawn if self._sampler.adapts and drawn.round == place.round else _Drawn()
        return SchedulePlace(
            order=self._order,
            index=place.index,
            round=place.round,
            position=place.position,
            member=place.member,
            begun=self._begun or GroupId(""),
            drawn=tuple(spec.task for spec in kept.specs),
            results_seq=kept.results_seq,
        )

    def take(self, count: int, *, blocked: Container[str]) -> list[Slot]:
        """At most `count` slots; fewer, or none, when many in a row are of blocked sites: the rest comes the next time."""
        slots: list[Slot] = []
        for _ in range(_LOOK_AT_ONCE):
            if len(slots) == count:
                break
            slot = self._slot(self._place)
            if self._is_due(slot, blocked):
                slots.append(slot)
                self._begun = self._group(slot)
            self._place = self._after(self._place)
        return slots

    def _slot(self, place: _Place) -> Slot:
        spec = self._round(place.round)[place.position]
        greedy = self._greedy_last and place.member == self._num_members - 1
        return Slot(spec, place.index, place.round, place.member, greedy=greedy, results_seq=self._drawn.results_seq)

    def _after(self, place: _Place) -> _Place:
        if place.member + 1 < self._num_members:
            return replace(place, index=place.index + 1, member=place.member + 1)
        if place.position + 1 < len(self._round(place.round)):
            return _Place(index=place.index + 1, round=place.round, position=place.position + 1)
        return _Place(index=place.index + 1, round=place.round + 1)

    def _round(self, index: int) -> tuple[TaskSpec, ...]:
        if self._drawn.round != index:
            history: History = self._attempts.history(self._specs) if self._sampler.adapts else {}
            seq = self._attempts.last_seq if self._sampler.adapts else 0
            self._drawn = _Drawn(index, self._draw(index, history), seq)
        return self._drawn.specs

    def _draw(self, index: int, history: History) -> tuple[TaskSpec, ...]:
        """Raises `ConfigurationError` for a sampler that cannot do it: it would not do it at the next start either."""
        try:
            drawn = tuple(self._sampler.round(index, history))
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

    def _is_due(self, slot: Slot, blocked: Container[str]) -> bool:
        is_free = slot.member == 0 and self._sites[slot.spec.task] not in blocked
        return is_free or self._group(slot) == self._begun

    def _group(self, slot: Slot) -> GroupId:
        return group_of(slot, Split.TRAIN, demonstrate=self._demonstrate)
