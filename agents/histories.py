"""What a policy worker remembers of the episodes it answers, and how it learns what another worker did.

Invariant: a history handed out is the chain before the observation, record for record.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from agents.context import Round
from bus import chain
from bus.ports import Bus
from bus.subjects import Subjects
from schemas.errors import PolicyError
from schemas.ids import EpisodeId
from schemas.messages import Observation, Picture, RecordRef, StepRequest, Task

T = TypeVar("T", Task, Observation, StepRequest)


@dataclass(frozen=True, slots=True)
class History:
    """One attempt at an episode: its task and every round so far, oldest first."""

    task: Task
    rounds: tuple[Round, ...]
    refs: tuple[RecordRef, ...]
    """obs 0, act 0, obs 1, act 1, ...: equals `Observation.earlier` of the observation that follows."""


class Histories:
    """The most recently answered episodes; pictures that have left the window are let go of."""

    def __init__(self, bus: Bus, subjects: Subjects, *, num_pictures: int, capacity: int) -> None:
        self._bus = bus
        self._subjects = subjects
        self._num_pictures = num_pictures
        self._capacity = capacity
        self._kept: OrderedDict[EpisodeId, History] = OrderedDict()

    async def before(self, observation: Observation) -> History:
        """The history that `observation` continues: from memory, or read anew from the chain.

        Raises:
            PolicyError: the chain does not hold the records that the observation names.
        """
        kept = self._kept.get(observation.episode)
        if kept is not None and kept.refs == observation.earlier:
            return kept
        return await self._rebuild(observation)

    def add(self, history: History, round_: Round, answer: RecordRef) -> None:
        """Remembers an answer of this worker's own."""
        rounds = self._light((*history.rounds, round_))
        refs = (*history.refs, round_.ref, answer)
        self._kept[round_.observation.episode] = History(task=history.task, rounds=rounds, refs=refs)
        self._kept.move_to_end(round_.observation.episode)
        while len(self._kept) > self._capacity:
            self._kept.popitem(last=False)

    async def _rebuild(self, observation: Observation) -> History:
        if observation.task is None:
            raise PolicyError(f"observation {observation.step} of {observation.episode} does not say where its task is")
        task = await self._read(observation.task, Task)
        rounds = []
        for seen, done in zip(observation.earlier[::2], observation.earlier[1::2], strict=True):
            rounds.append(Round(seen, await self._read(seen, Observation), await self._read(done, StepRequest)))
        return History(task=task, rounds=self._light(tuple(rounds)), refs=observation.earlier)

    async def _read(self, ref: RecordRef, kind: type[T]) -> T:
        record = await chain.read(self._bus, self._subjects, ref)
        if record is None or not isinstance(record.message, kind):
            raise PolicyError(f"record {ref.seq} of shard {ref.shard} is not the {kind.__name__} that an observation names")
        return record.message

    def _light(self, rounds: tuple[Round, ...]) -> tuple[Round, ...]:
        last = len(rounds) - self._num_pictures
        return tuple(_without_picture(round_) if index < last else round_ for index, round_ in enumerate(rounds))


def _without_picture(round_: Round) -> Round:
    observation = round_.observation
    if not observation.picture.data:
        return round_
    picture = Picture(data=b"", media_type=observation.picture.media_type, width=0, height=0)
    return Round(round_.ref, msgspec.structs.replace(observation, picture=picture), round_.step)
