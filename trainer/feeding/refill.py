"""Episodes that further ones are admitted in place of: those of groups without variance. Pure.

An iteration takes complete groups in the order in which they became complete. It ends when those with variance hold the
episodes of an iteration, or when all of them together hold `objective_config.max_refill` times as many.
"""

from bisect import bisect_right
from dataclasses import dataclass, field

from schemas.ids import GroupId
from schemas.messages import Judgement
from trainer.group_variance import lacks_variance
from trainer.scores import score


@dataclass(frozen=True, slots=True)
class Refilled:
    """As seen from one version."""

    used_up: int
    """Episodes of the groups that were complete when the trainer made the version: none of them is used again."""
    in_vain: int
    """Episodes of groups that have become complete since, without variance."""


@dataclass
class Refill:
    """All groups so far; `num_members` episodes each."""

    num_members: int
    _open: dict[GroupId, list[float | None]] = field(default_factory=dict)
    _complete: list[int] = field(default_factory=list)
    """Sequences on JUDGED, ascending."""
    _in_vain: list[int] = field(default_factory=list)
    """Those of groups without variance."""

    def add(self, seq: int, judgement: Judgement) -> None:
        """Takes a training judgement in, each once and in the order of the stream."""
        scored = score(judgement)
        rewards = self._open.setdefault(judgement.group, [])
        rewards.append(None if scored is None else scored.reward)
        if len(rewards) == self.num_members:
            del self._open[judgement.group]
            self._complete.append(seq)
            if lacks_variance(rewards):
                self._in_vain.append(seq)

    def after(self, seq: int) -> Refilled:
        """As seen from the version that the judgements up to `seq` were consumed for."""
        num_used = bisect_right(self._complete, seq)
        num_in_vain = len(self._in_vain) - bisect_right(self._in_vain, seq)
        return Refilled(num_used * self.num_members, num_in_vain * self.num_members)
