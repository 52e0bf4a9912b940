"""Folds what policies serve, and the version that everybody counts from, out of SERVED and the policies' heartbeats.

Invariant: the counted version is the oldest that is served. A worker that cannot load what is announced is not counted as long
as others serve, and answers nothing once it is older than what is counted (`is_left_behind`): feeder and policies go by the
same rule, so nobody waits for it and nothing that it would sample is admitted for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bus.ports import Bus, Record
from bus.subjects import Subjects
from schemas.ids import WorkerId
from schemas.messages import AnyMessage, Heartbeat, Role, ServedVersion, ServingState

SILENT_S = 15.0
"""A worker that is unheard for so long serves nothing, whatever it said."""


@dataclass
class ServedVersions:
    """Records may come twice and in any order.

    Of a worker's words the one with the highest sequence counts, unless the worker said another one later: a server that lost
    power gives sequences again.
    """

    _said: dict[WorkerId, tuple[int, ServedVersion]] = field(default_factory=dict)
    """With the sequence on SERVED."""
    _heard_at: dict[WorkerId, float] = field(default_factory=dict)

    def apply(self, message: AnyMessage, now: float, seq: int = 0) -> None:
        """Takes a record of SERVED or a heartbeat in; `now` in seconds of any steady clock, `seq` of the record."""
        match message:
            case ServedVersion():
                known = self._said.get(message.worker)
                if known is None or known[0] <= seq or known[1].at < message.at:
                    self._said[message.worker] = (seq, message)
            case Heartbeat(role=Role.POLICY):
                self._heard_at[message.worker] = max(now, self._heard_at.get(message.worker, now))
            case _:
                pass

    def of(self, worker: WorkerId) -> ServedVersion | None:
        """The newest word of a worker, heard or not; None while it is away."""
        said = self._said.get(worker)
        return said[1] if said is not None and said[1].state is not ServingState.AWAY else None

    def live(self, now: float) -> list[ServedVersion]:
        """Of every worker that is heard and not away."""
        heard = (self.of(worker) for worker, at in self._heard_at.items() if now - at < SILENT_S)
        return [said for said in heard if said is not None]

    def counted(self, now: float) -> int | None:
        """The oldest version among the workers that serve; where none does, the newest that is left; None: nobody is heard."""
        live = self.live(now)
        serving = [said.version for said in live if said.state is ServingState.SERVING]
        return min(serving) if serving else max((said.version for said in live), default=None)

    def counted_or_last(self, now: float) -> int | None:
        """As `counted`; where nobody is heard, the oldest that anybody served last: whoever comes back answers by it."""
        counted = self.counted(now)
        if counted is not None:
            return counted
        return min((said.version for _, said in self._said.values() if said.state is not ServingState.AWAY), default=None)

    def is_left_behind(self, worker: WorkerId, now: float) -> bool:
        """Whether a worker has to leave steps to others: it cannot follow, and what it serves is older than what counts."""
        said, counted = self.of(worker), self.counted(now)
        unable = said is not None and said.state is ServingState.UNABLE
        return unable and counted is not None and said is not None and said.version < counted


async def served_records(bus: Bus, subjects: Subjects) -> Sequence[Record]:
    """What a fold begins with."""
    said = await bus.history(subjects.served, subjects.everything("served"))
    heard = await bus.history(subjects.heartbeats, subjects.everything("heartbeat", Role.POLICY.value))
    return (*said, *heard)
