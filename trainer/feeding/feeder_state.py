"""What the feeder knows, folded from the streams. Every message may come twice and in any order across streams.

Invariant: knowing too little only ever admits too little, so a feeder may act while it is still catching up, once it has read
the blocklist and what policies serve. Judgements are those of one rubric: the state takes an episode's first.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from bus.blocklist import Blocklist
from bus.served import ServedVersions
from schemas.ids import EpisodeId
from schemas.messages import AnyMessage, Checkpoint, Heartbeat, Judgement, ServedVersion, SiteBlock, Split, Trajectory
from trainer.feeding.attempts import Attempts
from trainer.feeding.refill import Refill, Refilled
from trainer.scores import Score, score

_WINDOW = 256


@dataclass
class FeederState:
    """`demonstrate` says which pool episodes are counted: the oracle's demonstrations, or the policy's training."""

    demonstrate: bool = False
    version: int = 0
    """Of the newest announced checkpoint."""
    admitted: set[EpisodeId] = field(default_factory=set)
    """Training episodes (or demonstrations) whose chain exists."""
    ended: set[EpisodeId] = field(default_factory=set)
    accepted: set[EpisodeId] = field(default_factory=set)
    """Those that are judged."""
    evaluated: dict[EpisodeId, Score | None] = field(default_factory=dict)
    """Every judged evaluation episode; None: without a verdict."""
    window: deque[Score] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    """The latest training episodes with a verdict."""
    blocklist: Blocklist = field(default_factory=Blocklist)
    policies: ServedVersions = field(default_factory=ServedVersions)
    attempts: Attempts = field(default_factory=Attempts)
    judged_seqs: dict[int, int] = field(default_factory=dict)
    """By version: sequence on JUDGED up to which everything was consumed for it."""
    refill: Refill | None = None
    """None: nothing is admitted in place of groups without variance."""

    def apply(self, message: AnyMessage, now: float, seq: int = 0) -> None:
        """Takes one message in; `now` in seconds of any steady clock, `seq` of its record."""
        match message:
            case Checkpoint():
                self.version = max(self.version, message.version)
                self.judged_seqs[message.version] = message.judged_seq
            case ServedVersion() | Heartbeat():
                self.policies.apply(message, now, seq)
            case Judgement():
                self._judged(message, seq)
            case Trajectory() if self._counts(message):
                self.ended.add(message.episode)
            case SiteBlock():
                self.blocklist.apply(message)
            case _:
                pass

    def catch_up(self, blocklist: Blocklist) -> None:
        """Adds what stood on the bus at some moment; what came by `apply` is as new, or is followed by what is newer."""
        for site, entry in blocklist.entries.items():
            self.blocklist.entries.setdefault(site, entry)

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

    @property
    def running(self) -> int:
        return max(0, len(self.admitted) - len(self.ended))

    def unfinished(self, episodes: Collection[EpisodeId]) -> int:
        """How many of these evaluation episodes are not judged yet."""
        return sum(episode not in self.evaluated for episode in episodes)

    def scores(self, episodes: Collection[EpisodeId]) -> list[Score]:
        """Of those among these evaluation episodes that have a verdict."""
        return [scored for episode in episodes if (scored := self.evaluated.get(episode)) is not None]

    def _counts(self, trajectory: Trajectory) -> bool:
        return trajectory.task.split is Split.TRAIN and trajectory.task.demonstrate == self.demonstrate

    def _judged(self, judgement: Judgement, seq: int) -> None:
        if judgement.split is Split.EVAL:
            self.evaluated.setdefault(judgement.episode, score(judgement))
        elif self._counts(judgement.trajectory) and judgement.episode not in self.accepted:
            self.accepted.add(judgement.episode)
            self.ended.add(judgement.episode)
            self.attempts.add(seq, judgement)
            if self.refill is not None:
                self.refill.add(seq, judgement)
            if (scored := score(judgement)) is not None:
                self.window.append(scored)
