"""Reads an episode's chain behind a message: observations, steps and screenshots, when they are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from bus.ports import Bus
from bus.subjects import Subjects
from schemas.errors import RecordGone
from schemas.ids import EpisodeId
from schemas.messages import AnyMessage, Judgement, NetworkRecord, Observation, Screenshot, StepRequest, Trajectory

R = TypeVar("R", Observation, StepRequest)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Reads chains; one batched request per episode."""

    bus: Bus
    subjects: Subjects

    async def observations(self, of: Trajectory) -> tuple[Observation, ...]:
        """Observation k is what the policy saw at step k.

        Raises:
            RecordGone: the chain has aged out.
        """
        found = await self._records(Observation, "obs", of.episode, of.attempt)
        return _complete(found, of.num_observations, of.episode)

    async def steps(self, of: Trajectory) -> tuple[StepRequest, ...]:
        """Step k is the policy's answer to observation k. Raises `RecordGone`."""
        found = await self._records(StepRequest, "act", of.episode, of.attempt)
        return _complete(found, of.num_steps, of.episode)

    async def network(self, of: Trajectory) -> NetworkRecord | None:
        """The record of its attempt's traffic; None: none was made.

        Raises:
            RecordGone: the chain has aged out.
        """
        if of.network is None:
            return None
        stream = self.subjects.episodes(self.subjects.shard(of.episode))
        record = await self.bus.last(stream, self.subjects.chain_record(of.episode, of.attempt, "net", 0))
        if record is None or not isinstance(record.message, NetworkRecord):
            raise _gone(of.episode, 0, 1)
        return record.message

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
                seen = await self._records(Observation, "obs", message.episode, message.attempt)
                by_step = {observation.step: observation.screenshot for observation in seen}
                if missing := set(message.screenshots) - set(by_step):
                    raise _gone(message.episode, len(message.screenshots) - len(missing), len(message.screenshots))
                return tuple(by_step[step] for step in message.screenshots)
            case _:
                return ()

    async def _records(self, kind: type[R], token: str, episode: EpisodeId, attempt: int) -> list[R]:
        stream = self.subjects.episodes(self.subjects.shard(episode))
        records = await self.bus.history(stream, self.subjects.chain_kind(episode, attempt, token))
        found = [record.message for record in records if isinstance(record.message, kind)]
        return sorted(found, key=lambda message: message.step)


def _complete(found: Sequence[R], number: int, episode: EpisodeId) -> tuple[R, ...]:
    if [message.step for message in found[:number]] != list(range(number)):
        raise _gone(episode, len(found), number)
    return tuple(found[:number])


def _gone(episode: EpisodeId, num_found: int, number: int) -> RecordGone:
    return RecordGone(
        f"the chain of {episode} holds {num_found} of the {number} records asked for: it has aged out "
        "(bus_config.episodes_max_age_s); read the run's archive for older screenshots"
    )
