"""Episodes that further ones are admitted in place of: those of groups without variance. Pure.

An iteration takes complete groups in the order in which they became complete. It ends when those with variance hold the
episodes of an iteration, or when all of them together hold `objective_config.max_refill` times as many.
"""

from bisect import bisect_right
from dataclasses import dataclass, field

from schemas.ids import GroupId
from schemas.messages import Judgement, OpenGroup, RefillMemory
from trainer.group_variance import lacks_variance
from trainer.scores import score


@dataclass(frozen=True, slots=True)
class Refilled:
    """As seen from one version."""

    used_up: int
    """Episodes of the groups that were complete when the trainer made the version, and of those that are lost: none of them is
    used again."""
    in_vain: int
    """Episodes of groups that have become complete since, without variance."""


@dataclass
class Refill:
    """All groups so far; `num_members` episodes each. Those that old versions used up are remembered by their number alone,
    and so are lost ones, of which a member will never be judged."""

    num_members: int
    _open: dict[GroupId, OpenGroup] = field(default_factory=dict)
    _num_before: int = 0
    _before_seq: int = 0
    _complete: list[int] = field(default_factory=list)
    """Sequences on JUDGED, ascending."""
    _in_vain: list[int] = field(default_factory=list)
    """Those of groups without variance."""

    def add(self, seq: int, judgement: Judgement) -> None:
        """Takes a training judgement in, each once and in the order of the stream."""
        scored = score(judgement)
        complete = self._with(judgement.group, None if scored is None else scored.reward)
        if complete is not None:
            self._complete.append(seq)
            if lacks_variance(complete.rewards):
                self._in_vain.append(seq)

    def give_up(self, group: GroupId) -> None:
        """A member will never be judged: its group is lost."""
        self._with(group, None, is_lost=True)

    def _with(self, group: GroupId, reward: float | None, *, is_lost: bool = False) -> OpenGroup | None:
        """The group, where it is complete with this and not lost."""
        before = self._open.pop(group, OpenGroup(group, ()))
        found = OpenGroup(group, (*before.rewards, reward), is_lost or before.is_lost)
        if len(found.rewards) < self.num_members:
            self._open[group] = found
        elif found.is_lost:
            self._num_before += 1
        else:
            return found
        return None

    def after(self, seq: int) -> Refilled:
        """As seen from the version that the judgements up to `seq` were consumed for; of a forgotten one, too little."""
        num_used = bisect_right(self._complete, seq) + (self._num_before if seq >= self._before_seq else 0)
        num_in_vain = len(self._in_vain) - bisect_right(self._in_vain, seq)
        return Refilled(num_used * self.num_members, num_in_vain * self.num_members)

    def forget(self, seq: int) -> None:
        """No version is asked about any more that consumed less than up to `seq`."""
        if seq > self._before_seq:
            num_forgotten = bisect_right(self._complete, seq)
            self._num_before, self._before_seq = self._num_before + num_forgotten, seq
            del self._complete[:num_forgotten]
            del self._in_vain[: bisect_right(self._in_vain, seq)]

    def memory(self) -> RefillMemory:
        return RefillMemory(
            open=tuple(self._open.values()),
            num_before=self._num_before,
            before_seq=self._before_seq,
            complete=tuple(self._complete),
            in_vain=tuple(self._in_vain),
        )

    @classmethod
    def of(cls, memory: RefillMemory, num_members: int) -> "Refill":
        return cls(
            num_members,
            {group.group: group for group in memory.open},
            memory.num_before,
            memory.before_seq,
            list(memory.complete),
            list(memory.in_vain),
        )
