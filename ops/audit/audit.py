"""The audit of a run: what its streams hold, which promises they break, and how long anybody waited."""

from dataclasses import asdict, dataclass

from bus.ports import Bus
from bus.subjects import Subjects
from ops.audit.feed import Feed
from ops.audit.ledger import read_ledger
from ops.audit.promises import Findings, check
from ops.audit.waits import Wait, Waiting, WaitMetrics, metrics, waits
from schemas.config import Config


@dataclass(frozen=True, kw_only=True)
class Audit:
    """Findings of a run that has ended; a run that goes on has unfinished and unjudged episodes."""

    findings: Findings
    waits: tuple[Wait, ...]

    @property
    def holds(self) -> bool:
        return self.findings.holds

    def metrics(self) -> dict[Waiting, WaitMetrics]:
        return {what: metrics(wait for wait in self.waits if wait.what is what) for what in Waiting}

    def as_json(self) -> dict[str, object]:
        recovery = {what.value: asdict(found) for what, found in self.metrics().items()}
        return {**asdict(self.findings), "waits": recovery, "holds": self.holds}


async def audit(bus: Bus, config: Config) -> Audit:
    """Reads every record of the run that `config` describes."""
    ledger = await read_ledger(bus, Subjects(config.bus_config.run, config.bus_config.num_shards))
    findings = check(ledger, feed=Feed.of(config), rubrics=config.bus_config.rubrics)
    return Audit(findings=findings, waits=tuple(waits(ledger, config.bus_config.trained_rubric)))
