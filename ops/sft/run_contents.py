"""Says which conversations a run holds already, before anything is written."""

from dataclasses import dataclass

from bus.ports import Bus
from bus.subjects import Subjects
from ops.archive.episodes import StoredEpisode
from ops.sft.findings import BadRecord
from schemas.messages import AnyMessage, Task

_ABOUT = ("instruction", "website", "domain", "subdomain", "difficulty")


@dataclass(frozen=True)
class RunContents:
    """Of one run."""

    bus: Bus
    subjects: Subjects

    async def holds(self, episode: StoredEpisode) -> bool:
        """Whether all of it is there, judged. Raises `BadRecord` where the run says something else of its task."""
        name, subjects = episode.episode, self.subjects
        known = await self.bus.last(subjects.episodes(subjects.shard(name)), subjects.chain_task(name))
        if known is None:
            return False
        if known.data != episode.records[0].data:
            other = _differing(episode.trajectory.task, known.message)
            raise BadRecord(
                f"the run holds this conversation with another {other}: import into another run, or leave it as it is there "
                "with --skip-bad"
            )
        for each in episode.judgements:
            judged = await self.bus.last(subjects.judged, subjects.judgement(each.split, each.rubric, each.episode))
            if judged is None:
                return False
        return True


def _differing(ours: Task, theirs: AnyMessage) -> str:
    fields = [name for name in _ABOUT if isinstance(theirs, Task) and getattr(ours, name) != getattr(theirs, name)]
    return " and ".join(fields) or "task"
