"""Holds what every worker is given: the run's bus and subjects, and what its heartbeats say."""

from dataclasses import dataclass

from bus.ports import Bus
from bus.presence import Status
from bus.subjects import Subjects
from schemas.ids import WorkerId


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """One worker in its run, passed whole to its parts."""

    bus: Bus
    subjects: Subjects
    status: Status

    @property
    def worker(self) -> WorkerId:
        return self.status.worker
