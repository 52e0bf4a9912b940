"""Counts a run from its streams alone: every admitted task one trajectory, every trajectory one judgement."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bus.ports import Bus, Record
from bus.subjects import Subjects
from schemas.messages import EpisodeStart, Observation, StepRequest, Task, Trajectory


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What the streams hold. `lost` and `num_duplicates` are the promises; both have to be empty when a run has ended."""

    num_tasks: int
    num_trajectories: int
    num_judgements: int
    num_duplicates: int
    """Records beyond the first under one identity: ended, published or judged twice."""
    unfinished: tuple[str, ...]
    """Admitted episodes without an end."""
    unpublished: tuple[str, ...]
    """Ended episodes that never came before a judge or consumer."""
    unjudged: tuple[str, ...]
    unknown: tuple[str, ...]
    """Trajectories or judgements of episodes that nobody admitted."""
    broken_chains: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        lost = (self.unfinished, self.unpublished, self.unjudged, self.unknown, self.broken_chains)
        return self.num_duplicates == 0 and not any(lost)

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "holds": self.holds}


async def audit(bus: Bus, subjects: Subjects, *, chains: bool = False) -> Audit:
    """Reads subjects only; with `chains` also every record of every episode."""
    admitted: dict[str, int] = {}
    ended: dict[str, int] = {}
    for shard in range(subjects.num_shards):
        stream = subjects.episodes(shard)
        admitted |= _by_episode(await bus.subjects(stream, subjects.chains(shard, "task")), -2)
        ended |= _by_episode(await bus.subjects(stream, subjects.chains(shard, "done")), -2)
    trajectory_subjects = await bus.subjects(subjects.trajectories, subjects.everything("trajectory"))
    published = _by_episode(trajectory_subjects, -1)
    judged_subjects = await bus.subjects(subjects.judged, subjects.judgements(None))
    judged = {subject.split(".")[-1] for subject in judged_subjects}
    broken = await _broken_chains(bus, subjects, admitted) if chains else ()
    counts = (*admitted.values(), *ended.values(), *published.values(), *judged_subjects.values())
    return Audit(
        num_tasks=len(admitted),
        num_trajectories=sum(published.values()),
        num_judgements=sum(judged_subjects.values()),
        num_duplicates=sum(count - 1 for count in counts),
        unfinished=_without(admitted, ended),
        unpublished=_without(ended, published),
        unjudged=_without(published, judged),
        unknown=_without({**published, **dict.fromkeys(judged, 1)}, admitted),
        broken_chains=broken,
    )


def _by_episode(counts: dict[str, int], token: int) -> dict[str, int]:
    return {subject.split(".")[token]: count for subject, count in counts.items()}


def _without(these: dict[str, int], those: dict[str, int] | set[str]) -> tuple[str, ...]:
    return tuple(sorted(episode for episode in these if episode not in those))


async def _broken_chains(bus: Bus, subjects: Subjects, admitted: dict[str, int]) -> tuple[str, ...]:
    broken: list[str] = []
    for shard in range(subjects.num_shards):
        for episode in admitted:
            filter_ = f"{subjects.run}.ep.{shard}.{episode}.>"
            records = await bus.history(subjects.episodes(shard), filter_)
            fault = chain_fault(records) if records else None
            if fault:
                broken.append(f"{episode}: {fault}")
    return tuple(broken)


def chain_fault(records: Sequence[Record]) -> str | None:
    """What is wrong with one episode's records, oldest first; None for a sound chain.

    Sound is: task, then for each attempt start, obs 0, act 0, obs 1, ... without a gap, then at most one done, last, which is
    that of the last attempt and counts its observations and steps.
    """
    attempt, num_observations, num_steps = 0, 0, 0
    for position, record in enumerate(records):
        message = record.message
        match message:
            case Task():
                sound = position == 0
            case EpisodeStart():
                sound = position > 0 and message.attempt == attempt + 1
                attempt, num_observations, num_steps = message.attempt, 0, 0
            case Observation():
                sound = num_observations == num_steps and (message.attempt, message.step) == (attempt, num_observations)
                num_observations += 1
            case StepRequest():
                sound = num_observations == num_steps + 1 and (message.attempt, message.step) == (attempt, num_steps)
                num_steps += 1
            case Trajectory():
                counts = (message.attempt, message.num_observations, message.num_steps)
                sound = position == len(records) - 1 and counts == (attempt, num_observations, num_steps)
            case _:
                sound = False
        if not sound:
            return f"record {record.seq} ({type(message).__name__}) does not follow the one before it"
    return None
