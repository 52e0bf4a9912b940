"""Watches a run while it goes on: whoever acknowledges an input has stored its outputs before.

Each look reads a queue first and the outputs after it. Outputs only grow, so an input that was gone from the queue at the
first read must have its outputs at the second, however much happens in between.
"""

from bus.ports import Bus
from bus.subjects import Subjects
from bus.topology import trajectory_queue
from schemas.bus_config import BusConfig
from schemas.errors import BusUnavailable


class AcknowledgementWatch:
    """`violations` names every input that was acknowledged too early."""

    def __init__(self, bus: Bus, subjects: Subjects, config: BusConfig) -> None:
        self._bus = bus
        self._subjects = subjects
        self._judges = {rubric: trajectory_queue(subjects, config, rubric) for rubric in config.rubrics}
        self._queued: set[str] = set()
        """Episodes that were seen in the queue."""
        self.violations: set[str] = set()
        self.num_looks = 0
        self.num_judged = 0
        self.is_settled = False
        """At the last look no task was queued, and everything that had ended was judged."""

    async def look(self) -> None:
        """Raises `BusUnavailable` when the server is away: nothing is concluded then."""
        num_queued = await self._look_at_tasks()
        num_unjudged = await self._look_at_trajectories()
        self.is_settled = num_queued == 0 and num_unjudged == 0
        self.num_looks += 1

    async def _look_at_tasks(self) -> int:
        """Returns how many are queued."""
        names = self._subjects
        queued = await self._episodes(names.tasks, names.everything("task"))
        gone = self._queued - queued
        self._queued |= queued
        ended: set[str] = set()
        for shard in range(names.num_shards):
            ended |= await self._episodes(names.episodes(shard), names.chains(shard, "done"))
        published = await self._episodes(names.trajectories, names.everything("trajectory"))
        self.violations |= {f"{episode}: its task was acknowledged before its chain ended" for episode in gone - ended}
        self.violations |= {
            f"{episode}: its task was acknowledged before its trajectory stood" for episode in gone - published
        }
        return len(queued)

    async def _look_at_trajectories(self) -> int:
        """By counting: what is neither waiting nor in a judge's hands was acknowledged. Returns how many are not judged.

        A queue learns of a record a moment after it is stored, so what was never delivered does not count as acknowledged.

        Raises:
            BusUnavailable: the judges' queue is not there.
        """
        names = self._subjects
        num_unjudged = 0
        self.num_judged = 0
        for rubric, queue in self._judges.items():
            published = len(await self._episodes(names.trajectories, names.everything("trajectory")))
            depth = await self._bus.depth(queue)
            if depth is None:
                raise BusUnavailable(f"{queue.stream} has no queue {queue.name}: the run's administrator has to create it")
            num_judged = len(await self._bus.subjects(names.judged, names.judgements_by(rubric)))
            delivered = depth.delivered_seq + 1 - (await self._bus.stream_state(queue.stream)).first_seq
            acknowledged = min(published - depth.num_pending, delivered) - depth.num_in_flight
            if num_judged < acknowledged:
                self.violations.add(f"{acknowledged} trajectories were acknowledged when {num_judged} were judged by {rubric}")
            num_unjudged += published - num_judged
            self.num_judged += num_judged
        return num_unjudged

    async def _episodes(self, stream: str, subject_filter: str) -> set[str]:
        """The episodes under a filter: token 3 of tasks, chains and trajectories alike."""
        return {subject.split(".")[3] for subject in await self._bus.subjects(stream, subject_filter)}
