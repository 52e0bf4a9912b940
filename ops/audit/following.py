"""The promises of a run whose records age out, checked as they pass. Pure: records in, what is wrong out.

What has aged out cannot be read again, so whoever proves such a run follows its streams from the beginning and remembers names
and counts alone.
"""

from collections import Counter
from dataclasses import dataclass, field

from bus.ports import Record
from schemas.ids import EpisodeId
from schemas.messages import Checkpoint, EpisodeStart, Judgement, Task, Trajectory


@dataclass
class Passing:
    """What has passed so far, of all streams of a run, each read in order."""

    admitted: Counter[EpisodeId] = field(default_factory=Counter)
    begun: dict[EpisodeId, dict[int, int]] = field(default_factory=dict)
    """Of every episode, by attempt: the sequence of its start."""
    end_seqs: dict[EpisodeId, int] = field(default_factory=dict)
    ended: Counter[EpisodeId] = field(default_factory=Counter)
    published: Counter[EpisodeId] = field(default_factory=Counter)
    judged: Counter[EpisodeId] = field(default_factory=Counter)
    versions: list[int] = field(default_factory=list)
    num_consumed: int = 0
    """Episodes, as the newest version says."""
    consumed_seq: int = 0
    faults: list[str] = field(default_factory=list)

    def apply(self, record: Record) -> None:
        """Takes a record in, as it was stored."""
        match record.message:
            case Task() as task:
                self._once(self.admitted, task.episode, "admitted")
            case EpisodeStart() as start:
                attempts = self.begun.setdefault(start.episode, {})
                if start.attempt in attempts:
                    self.faults.append(f"attempt {start.attempt} at {start.episode} was begun twice")
                attempts[start.attempt] = record.seq
            case Trajectory() as trajectory if record.subject.endswith(".done"):
                self._once(self.ended, trajectory.episode, "ended")
                self.end_seqs[trajectory.episode] = record.seq
            case Trajectory() as trajectory:
                self._once(self.published, trajectory.episode, "published")
            case Judgement() as judgement:
                self._once(self.judged, judgement.episode, "judged")
            case Checkpoint() as checkpoint:
                self._announced(checkpoint)
            case _:
                pass

    def _once(self, counter: Counter[EpisodeId], episode: EpisodeId, what: str) -> None:
        counter[episode] += 1
        if counter[episode] > 1:
            self.faults.append(f"{episode} was {what} {counter[episode]} times")

    def _announced(self, checkpoint: Checkpoint) -> None:
        expected = self.versions[-1] + 1 if self.versions else 0
        if checkpoint.version != expected:
            self.faults.append(f"version {checkpoint.version} stands where version {expected} belongs")
        if self.versions and checkpoint.judged_seq <= self.consumed_seq:
            self.faults.append(f"version {checkpoint.version} consumed nothing that version {self.versions[-1]} had not")
        if self.versions and checkpoint.num_trajectories <= self.num_consumed:
            self.faults.append(f"version {checkpoint.version} counts no episode more than version {self.versions[-1]}")
        self.versions.append(checkpoint.version)
        self.num_consumed, self.consumed_seq = checkpoint.num_trajectories, checkpoint.judged_seq

    @property
    def unfinished(self) -> set[EpisodeId]:
        """Admitted, and not published yet."""
        return set(self.admitted) - set(self.published)

    def proof(self) -> list[str]:
        """What is wrong when everything has settled; each stream is read for itself, so only then ends can be matched."""
        unknown = sorted((set(self.published) | set(self.judged) | set(self.begun)) - set(self.admitted))
        late = (
            episode for episode, end in self.end_seqs.items() if max(self.begun.get(episode, {}).values(), default=0) > end
        )
        return [
            *self.faults,
            *(f"{episode} was begun again behind its end" for episode in late),
            *(f"{episode} was never admitted" for episode in unknown),
            *(f"{episode} never ended" for episode in sorted(self.unfinished)),
            *(f"{episode} was never judged" for episode in sorted(set(self.published) - set(self.judged))),
        ]
