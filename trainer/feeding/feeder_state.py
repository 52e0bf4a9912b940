"""Holds what the feeder knows: what its memory says, and what the streams have told since. They are read in any order.

Invariants: an episode is known from its admission until a version has consumed it (where nothing is trained, until it is
judged), so what is known is bounded by what is under way, however long the run lasts; and knowing too little only ever admits
too little, once the blocklist and what policies serve are read. Judgements are those of one rubric.
"""

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import msgspec

from bus.blocklist import Blocklist
from bus.served import ServedVersions
from schemas.ids import EpisodeId, PolicyVersion, group_in
from schemas.messages import (
    AnyMessage,
    Checkpoint,
    FedEpisode,
    FeederMemory,
    Heartbeat,
    Judgement,
    SchedulePlace,
    ServedVersion,
    SiteBlock,
    Split,
    Task,
    Trajectory,
)
from trainer.feeding.attempts import Attempts
from trainer.feeding.evaluation_rounds import EvaluationRounds
from trainer.feeding.refill import Refill, Refilled
from trainer.scores import Score, score

_WINDOW = 256
_NUM_VERSIONS = 64
"""Of which it is known what they consumed: policies may serve any of them."""


@dataclass
class FeederState:
    """`demonstrate` says which pool episodes are counted: the oracle's demonstrations, or the policy's training."""

    demonstrate: bool = False
    trains: bool = True
    """Whether versions consume the episodes."""
    version: int = 0
    """Of the newest announced checkpoint."""
    num_admitted: int = 0
    """Training episodes (or demonstrations) so far, without those that were given up."""
    num_accepted: int = 0
    """Those that are judged."""
    num_evaluated: int = 0
    """Evaluation episodes that were judged lately."""
    episodes: dict[EpisodeId, FedEpisode] = field(default_factory=dict)
    """Those that are not consumed yet."""
    rounds: EvaluationRounds = field(default_factory=EvaluationRounds)
    sequences: dict[str, int] = field(default_factory=dict)
    """By stream: everything up to this sequence is contained."""
    window: deque[Score] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    """The latest training episodes with a verdict."""
    blocklist: Blocklist = field(default_factory=Blocklist)
    policies: ServedVersions = field(default_factory=ServedVersions)
    attempts: Attempts = field(default_factory=Attempts)
    judged_seqs: dict[int, int] = field(default_factory=dict)
    """By version: sequence on JUDGED up to which everything was consumed for it."""
    refill: Refill | None = None
    """None: nothing is admitted in place of groups without variance."""

    def apply(self, message: AnyMessage, now: float, seq: int = 0, stored_at: float = 0.0) -> None:
        """Takes one message in; `now` in seconds of any steady clock, `seq` and `stored_at` (unix seconds) of its record."""
        match message:
            case Checkpoint():
                self._announced(message)
            case ServedVersion() | Heartbeat():
                self.policies.apply(message, now, seq)
            case Judgement():
                self._judged(message, seq)
            case Trajectory() if message.episode in self.episodes:
                self._note(msgspec.structs.replace(self.episodes[message.episode], ended_seq=seq))
            case SiteBlock():
                self.blocklist.apply(message, stored_at)
            case _:
                pass

    def served(self, now: float) -> int | None:
        """The oldest version among the policies that serve (`bus.served`); None when none has been heard lately."""
        return self.policies.counted(now)

    def admitting_version(self, now: float) -> int:
        """The version that admission counts from: what is played now, not what has only been announced."""
        served = self.policies.counted_or_last(now)
        return self.version if served is None else min(self.version, served)

    def refilled(self, version: int) -> Refilled | None:
        """As seen from a version; None without refill."""
        if self.refill is None:
            return None
        return self.refill.after(max((seq for made, seq in self.judged_seqs.items() if made <= version), default=0))

    # training episodes ------------------------------------------------------------------------------------------------

    def admit(self, episodes: Iterable[EpisodeId]) -> None:
        for episode in episodes:
            self.episodes[episode] = FedEpisode(episode)
            self.num_admitted += 1

    def end(self, episode: EpisodeId, seq: int) -> None:
        """The feeder ended it itself; its end stands behind `seq` on TRAJECTORIES."""
        self._note(FedEpisode(episode, ended_seq=seq + 1))

    def give_up(self, episodes: Collection[EpisodeId]) -> None:
        """Nothing more will come of these: others are admitted in their place."""
        for episode in episodes:
            self.rounds.judged(episode, None)
            if self.episodes.pop(episode, None) is None:
                continue
            if self.refill is None:
                self.num_admitted -= 1
            else:
                self.refill.give_up(group_in(episode))

    @property
    def under_way(self) -> list[EpisodeId]:
        """Training episodes that have not ended."""
        return [fed.episode for fed in self.episodes.values() if not fed.ended_seq and not fed.judged_seq]

    @property
    def running(self) -> int:
        return len(self.under_way)

    @property
    def num_ended(self) -> int:
        return self.num_admitted - self.running

    def aged_out(self, *, first_trajectory: int, first_judgement: int) -> list[EpisodeId]:
        """Episodes whose newest record is older than the first one that its stream still has: nobody reads it any more."""
        return [
            fed.episode
            for fed in self.episodes.values()
            if (0 < fed.judged_seq < first_judgement) or (not fed.judged_seq and 0 < fed.ended_seq < first_trajectory)
        ]

    def _counts(self, trajectory: Trajectory) -> bool:
        return trajectory.task.split is Split.TRAIN and trajectory.task.demonstrate == self.demonstrate

    def _judged(self, judgement: Judgement, seq: int) -> None:
        if judgement.split is Split.EVAL:
            self.num_evaluated += 1
            self.rounds.judged(judgement.episode, score(judgement))
        elif self._counts(judgement.trajectory):
            self.attempts.add(seq, judgement)
            if (fed := self.episodes.get(judgement.episode)) is not None:
                if not fed.judged_seq:
                    self._accept(judgement, seq)
                self._note(FedEpisode(fed.episode, max(fed.ended_seq, 1), seq))

    def _accept(self, judgement: Judgement, seq: int) -> None:
        self.num_accepted += 1
        if self.refill is not None:
            self.refill.add(seq, judgement)
        if (scored := score(judgement)) is not None:
            self.window.append(scored)

    def _announced(self, checkpoint: Checkpoint) -> None:
        """The newest, in the order of CHECKPOINTS; what was announced as one behind it before was none."""
        self.version = checkpoint.version
        before = {version: seq for version, seq in self.judged_seqs.items() if version < checkpoint.version}
        self.judged_seqs = {**before, checkpoint.version: checkpoint.judged_seq}
        for version in sorted(self.judged_seqs)[:-_NUM_VERSIONS]:
            del self.judged_seqs[version]
        if self.refill is not None:
            self.refill.forget(min(self.judged_seqs.values()))
        for fed in list(self.episodes.values()):
            self._note(fed)

    def _note(self, fed: FedEpisode) -> None:
        consumed = max(self.judged_seqs.values(), default=0) if self.trains else fed.judged_seq
        if 0 < fed.judged_seq <= consumed:
            self.episodes.pop(fed.episode, None)
        else:
            self.episodes[fed.episode] = fed

    # memory -----------------------------------------------------------------------------------------------------------

    def restore(self, memory: FeederMemory, *, judged: str) -> None:
        """Knows what the feeder before knew; the evaluation rounds and results are restored apart. `judged`: the stream."""
        self.attempts.last_seq = memory.sequences.get(judged, 0)
        self.version = memory.version
        self.num_admitted, self.num_accepted = memory.num_admitted, memory.num_accepted
        self.episodes = {fed.episode: fed for fed in memory.episodes}
        self.sequences = dict(memory.sequences)
        self.judged_seqs = dict(memory.consumed)
        if self.refill is not None:
            self.refill = Refill.of(memory.refill, self.refill.num_members)

    def memory(self, *, holder: str, place: SchedulePlace, intended: Collection[Task], intended_seq: int) -> FeederMemory:
        """`intended`: what is about to be admitted, and contained already."""
        memory = FeederMemory(
            holder=holder,
            place=place,
            num_admitted=self.num_admitted,
            num_accepted=self.num_accepted,
            episodes=tuple(self.episodes.values()),
            intended=tuple(intended),
            intended_seq=intended_seq,
            rounds=self.rounds.memory(),
            rounds_through=self.rounds.through,
            version=PolicyVersion(self.version),
            consumed=tuple(sorted(self.judged_seqs.items())),
            sequences=dict(self.sequences),
        )
        return memory if self.refill is None else msgspec.structs.replace(memory, refill=self.refill.memory())
