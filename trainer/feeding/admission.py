"""Putting episodes on the bus, and finding what a dead worker left half done there."""

import time
from collections.abc import Mapping

from bus import chain, chain_state
from bus.ports import Bus, Record
from bus.skipping import skip
from bus.stored import newest
from bus.subjects import Subjects
from schemas.errors import MessageCorrupt, RecordGone, StreamFull
from schemas.ids import EpisodeId
from schemas.messages import Outcome, Split, Task, Trajectory
from trainer.retrying import until_available


class Admitter:
    """Every operation may be repeated: the chain and the queue each take an episode once."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects

    async def admit(self, task: Task) -> None:
        """Begins the episode's chain, then queues it; waits while the bus is away."""
        await until_available(lambda: chain.admit(self._bus, self._subjects, task))
        await until_available(lambda: self._queue(task))

    async def end(self, episode: EpisodeId, outcome: Outcome, reason: str) -> bool:
        """Ends an episode from outside, unless it has ended, and has judges hear of it; False: its chain is gone."""
        task = await self._task(episode)
        if task is None:
            return False
        try:
            trajectory = await chain.cancel(self._bus, self._subjects, task, outcome, reason, time.time())
        except RecordGone:
            return False
        await chain.publish_trajectory(self._bus, self._subjects, trajectory)
        return True

    async def finish(self, task: Task, behind_seq: int, behind_chains: Mapping[str, int]) -> bool:
        """Admits an episode of which nobody knows whether it was, if that can still be told; else False.

        It is admitted twice under no circumstances: its chain would stand behind `behind_chains` on its stream, and had it
        ended, its end behind `behind_seq` on TRAJECTORIES. So where nothing has aged out from there, what is not to be seen
        has not been.
        """
        if await self._is_queued(task.episode, task.split) or await self._is_published(task.episode, task.split):
            return True
        names = self._subjects
        chains = names.episodes(names.shard(task.episode))
        places = {names.trajectories: behind_seq, chains: behind_chains.get(chains, 0)}
        aged = [(await self._bus.stream_state(stream)).first_seq > seq + 1 for stream, seq in places.items()]
        if any(aged) and await self._task(task.episode) is None:
            return False
        await self.admit(task)
        return True

    async def repair(self, episode: EpisodeId, split: Split) -> bool:
        """Queues an admitted episode that is not, and publishes an end that is not; False: nothing of it is left."""
        if await self._is_published(episode, split):
            return True
        names = self._subjects
        try:
            if await self._publish(await self._bus.last(names.episodes(names.shard(episode)), names.chain_done(episode))):
                return True
            # Whoever plays it publishes before it leaves the queue: what is in neither place is played by nobody.
            if await self._is_queued(episode, split) or await self._publish(await chain.read_end(self._bus, names, episode)):
                return True
        except MessageCorrupt as error:
            return await self.end(episode, Outcome.FAILED, f"how it ended cannot be read: {error}")
        task = await self._task(episode)
        if task is not None:
            await self._queue(task)
        return task is not None or await self._is_published(episode, split)

    async def _publish(self, end: Record | None) -> bool:
        """Raises `MessageCorrupt` for an end of another task than the episode's."""
        if end is None or not isinstance(end.message, Trajectory):
            return False
        if not await chain_state.is_end(self._bus, self._subjects, end.message):
            raise MessageCorrupt("it is the end of another task", subject=end.subject, seq=end.seq)
        await chain.publish_trajectory(self._bus, self._subjects, end.message)
        return True

    async def _is_queued(self, episode: EpisodeId, split: Split) -> bool:
        """Also as what no reader takes: whoever is given that rejects it, and the next look finds it gone."""
        try:
            return await self._bus.last(self._subjects.tasks, self._subjects.task(split, episode)) is not None
        except MessageCorrupt:
            return True

    async def _is_published(self, episode: EpisodeId, split: Split) -> bool:
        return await newest(self._bus, self._subjects.trajectories, self._subjects.trajectory(split, episode)) is not None

    async def _task(self, episode: EpisodeId) -> Task | None:
        try:
            record = await chain.read_task(self._bus, self._subjects, episode)
        except MessageCorrupt as error:
            skip(error.subject, error.seq, str(error))
            return None
        return record.message if record is not None and isinstance(record.message, Task) else None

    async def _queue(self, task: Task) -> None:
        subject = self._subjects.task(task.split, task.episode)
        try:
            await self._bus.append(self._subjects.tasks, subject, task)
        except StreamFull:
            # The queue holds one message a task: when it holds this one, the work is done; else it is really full.
            if not await self._is_queued(task.episode, task.split):
                raise
