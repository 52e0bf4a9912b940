"""Reads an episode's chain behind a message: observations, steps and screenshots, when they are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from bus.ports import Bus
from bus.skipping import skip
from bus.stored import standing
from bus.subjects import Subjects
from schemas.errors import MessageCorrupt, RecordGone
from schemas.ids import EpisodeId
from schemas.messages import AnyMessage, Judgement, NetworkRecord, Observation, Screenshot, StepRequest, Trajectory

R = TypeVar("R", Observation, StepRequest, NetworkRecord)
S = TypeVar("S", Observation, StepRequest)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Reads chains; one batched request per episode. What that lacks is asked for by name.

    Whatever the chain's leader has and cannot be seen yet is a `BusUnavailable`.
    """

    bus: Bus
    subjects: Subjects

    async def observations(self, of: Trajectory) -> tuple[Observation, ...]:
        """Observation k is what the policy saw at step k.

        Raises:
            RecordGone: the chain has aged out.
        """
        return await self._records(Observation, "obs", of.episode, of.attempt, range(of.num_observations))

    async def steps(self, of: Trajectory) -> tuple[StepRequest, ...]:
        """Step k is the policy's answer to observation k. Raises `RecordGone`."""
        return await self._records(StepRequest, "act", of.episode, of.attempt, range(of.num_steps))

    async def network(self, of: Trajectory) -> NetworkRecord | None:
        """The record of its attempt's traffic; None: none was made.

        Raises:
            RecordGone: the chain has aged out.
        """
        if of.network is None:
            return None
        record = await self._record(NetworkRecord, "net", of.episode, of.attempt, 0)
        if record is None:
            raise _gone(of.episode, 0, 1)
        return record

    async def screenshots(self, message: AnyMessage) -> tuple[Screenshot, ...]:
        """Those that belong to a message: of a trajectory or judgement screenshot k was seen at step k; of a step, those in
        its prompt. Raises `RecordGone`.
        """
        match message:
            case Trajectory():
                return tuple(seen.screenshot for seen in await self.observations(message))
            case Judgement():
                return await self.screenshots(message.trajectory)
            case Observation():
                return (message.screenshot,)
            case StepRequest():
                seen = await self._records(Observation, "obs", message.episode, message.attempt, message.screenshots)
                return tuple(observation.screenshot for observation in seen)
            case _:
                return ()

    async def _records(
        self, kind: type[S], token: str, episode: EpisodeId, attempt: int, steps: Sequence[int]
    ) -> tuple[S, ...]:
        """Those of these steps. Raises `RecordGone` for the first that the chain's leader lacks."""
        records = await self.bus.history(self._stream(episode), self.subjects.chain_kind(episode, attempt, token))
        found = {message.step: message for record in records if isinstance(message := record.message, kind)}
        for step in steps:
            if step not in found:
                record = await self._record(kind, token, episode, attempt, step)
                if record is None:
                    raise _gone(episode, len(found.keys() & set(steps)), len(steps))
                found[step] = record
        return tuple(found[step] for step in steps)

    async def _record(self, kind: type[R], token: str, episode: EpisodeId, attempt: int, step: int) -> R | None:
        """None: it has aged out, or no reader takes it."""
        subject = self.subjects.chain_record(episode, attempt, token, step)
        try:
            record = await standing(self.bus, self._stream(episode), subject)
        except MessageCorrupt as error:
            skip(error.subject, error.seq, str(error))
            return None
        return record.message if record is not None and isinstance(record.message, kind) else None

    def _stream(self, episode: EpisodeId) -> str:
        return self.subjects.episodes(self.subjects.shard(episode))


def _gone(episode: EpisodeId, num_found: int, number: int) -> RecordGone:
    return RecordGone(
        f"the chain of {episode} holds {num_found} of the {number} records asked for: it has aged out "
        "(bus_config.episodes_max_age_s); read the run's archive for older screenshots"
    )
