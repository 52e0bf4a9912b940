"""The audit of a run: what its streams hold, which promises they break, and how long anybody waited."""

from dataclasses import asdict, dataclass

from bus.ports import Bus
from bus.subjects import Subjects
from ops.checker.ledger import read_ledger
from ops.checker.promises import Findings, check
from ops.checker.waits import Wait, WaitFigures, Waiting, figures, waits


@dataclass(frozen=True, kw_only=True)
class Audit:
    """Findings of a run that has ended; a run that goes on has unfinished and unjudged episodes."""

    findings: Findings
    waits: tuple[Wait, ...]

    @property
    def holds(self) -> bool:
        return self.findings.holds

    def figures(self) -> dict[Waiting, WaitFigures]:
        return {what: figures(wait for wait in self.waits if wait.what is what) for what in Waiting}

    def as_json(self) -> dict[str, object]:
        recovery = {what.value: asdict(found) for what, found in self.figures().items()}
        return {**asdict(self.findings), "waits": recovery, "holds": self.holds}


async def audit(bus: Bus, subjects: Subjects, *, batch: int | None = None) -> Audit:
    """Reads every record of the run. `batch`: judgements that one checkpoint consumes (`train_tasks_rollout_size`)."""
    ledger = await read_ledger(bus, subjects)
    return Audit(findings=check(ledger, batch=batch), waits=tuple(waits(ledger)))
