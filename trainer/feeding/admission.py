"""Putting episodes on the bus, and finding what a dead worker left half done there."""

import time
from collections.abc import Iterable
from functools import partial

from bus import chain
from bus.ports import Bus
from bus.skipping import skip
from bus.subjects import Subjects
from schemas.errors import MessageCorrupt, StreamFull
from schemas.ids import EpisodeId, round_of
from schemas.messages import Outcome, Task, Trajectory
from trainer.patience import patiently


class Admitter:
    """Every operation may be repeated: the chain and the queue each take an episode once."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects

    async def admit(self, task: Task) -> None:
        """Begins the episode's chain, then queues it; waits while the bus is away."""
        await patiently(lambda: chain.admit(self._bus, self._subjects, task))
        await patiently(lambda: self._queue(task))

    async def end(self, episode: EpisodeId, outcome: Outcome, reason: str) -> None:
        """Ends an episode from outside, unless it has ended, and sees to it that judges hear of it."""
        task = await self._task(episode)
        if task is not None:
            trajectory = await chain.cancel(self._bus, self._subjects, task, outcome, reason, time.time())
            await chain.publish_trajectory(self._bus, self._subjects, trajectory)

    async def repair(self) -> set[EpisodeId]:
        """Queues what is admitted, not done and not queued; publishes ends that were not. Returns all admitted episodes."""
        names = self._subjects
        # In this order, an episode that ends meanwhile looks queued or done, never lost.
        queued = await self._episodes(names.tasks, names.everything("task"), 3)
        published = await self._episodes(names.trajectories, names.everything("trajectory"), 3)
        admitted: set[EpisodeId] = set()
        done: set[EpisodeId] = set()
        for shard in range(names.num_shards):
            admitted |= await self._episodes(names.episodes(shard), names.chains(shard, "task"), 3)
            done |= await self._episodes(names.episodes(shard), names.chains(shard, "done"), 3)
        for episode in sorted(done - published):
            await self._publish(episode)
        for episode in sorted(admitted - done - queued):
            task = await self._task(episode)
            if task is not None:
                await self._queue(task)
        return admitted

    async def results_seqs(self, admitted: Iterable[EpisodeId]) -> dict[int, int]:
        """By round: `Task.results_seq` of its tasks, which all have the same; rounds whose chains are gone are left out."""
        seqs: dict[int, int] = {}
        for episode in sorted(admitted):
            drawn = round_of(episode)
            if drawn is not None and drawn not in seqs and (task := await patiently(partial(self._task, episode))) is not None:
                seqs[drawn] = task.results_seq
        return seqs

    async def _episodes(self, stream: str, subject_filter: str, position: int) -> set[EpisodeId]:
        """Episodes named by the subjects under a filter, at one token of each."""
        subjects = await self._bus.subjects(stream, subject_filter)
        return {EpisodeId(subject.split(".")[position]) for subject in subjects}

    async def _task(self, episode: EpisodeId) -> Task | None:
        try:
            record = await chain.read_task(self._bus, self._subjects, episode)
        except MessageCorrupt as error:
            skip(error.subject, error.seq, str(error))
            return None
        return record.message if record is not None and isinstance(record.message, Task) else None

    async def _publish(self, episode: EpisodeId) -> None:
        try:
            record = await chain.read_end(self._bus, self._subjects, episode)
        except MessageCorrupt as error:
            await self.end(episode, Outcome.FAILED, f"how it ended cannot be read: {error}")
            return
        if record is not None and isinstance(record.message, Trajectory):
            await chain.publish_trajectory(self._bus, self._subjects, record.message)

    async def _queue(self, task: Task) -> None:
        subject = self._subjects.task(task.split, task.episode)
        try:
            await self._bus.append(self._subjects.tasks, subject, task)
        except StreamFull:
            # The queue holds one message a task: when it holds this one, the work is done; else it is really full.
            if await self._bus.last(self._subjects.tasks, subject) is None:
                raise
