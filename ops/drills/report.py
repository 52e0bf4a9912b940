"""Reports on a drill: a table for people, the same as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from ops.audit.audit import Audit
from ops.audit.waits import Waiting
from ops.drills.bounds import Late, kinds_counted
from ops.drills.faults import FaultKind, Injected

_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Report:
    """Metrics of one drill; `holds` is the verdict."""

    command: str
    seed: int
    num_servers: int
    audit: Audit
    faults: Sequence[Injected]
    late: Sequence[Late]
    early_acknowledgements: Sequence[str]
    num_looks: int
    """Times that the queues were compared with the outputs while the run went on; 0 proves nothing."""
    num_expected: int
    """Training and evaluation episodes that the run is configured for."""
    versions_expected: int
    """Of the trainer, version 0 included."""
    leases_s: Mapping[Waiting, float]
    num_restarts: int
    duration_s: float
    peak_memory_mib: Mapping[str, float]
    skipped: Mapping[FaultKind, str]
    """Kinds of fault that could not be had here, with the reason."""
    highest_slowness: float = 1.0
    """How much slower processes ran, at the worst, than on a machine with a core for each; see `ops.drills.slowness`."""
    failure: str = ""
    """Why the run did not come to its end."""

    @property
    def holds(self) -> bool:
        kept = self.audit.holds and not self.late and not self.early_acknowledgements
        return kept and self.num_looks > 0 and not self.incomplete and not self.failure

    @property
    def incomplete(self) -> str:
        """What the streams lack of the whole run, however sound the rest is."""
        found = self.audit.findings
        if found.num_tasks != self.num_expected:
            return f"{found.num_tasks} of {self.num_expected} episodes were admitted"
        if found.num_checkpoints != self.versions_expected:
            return f"{found.num_checkpoints} of {self.versions_expected} versions were announced"
        return ""

    def as_json(self) -> dict[str, object]:
        findings = self.audit.findings
        return {
            "command": self.command,
            "seed": self.seed,
            "servers": self.num_servers,
            "holds": self.holds,
            "tasks": findings.num_tasks,
            "trajectories": findings.num_trajectories,
            "judgements": findings.num_judgements,
            "checkpoints": findings.num_checkpoints,
            "duplicates": findings.num_duplicates,
            "lost": len(findings.unfinished) + len(findings.unpublished) + len(findings.unjudged),
            "broken_chains": len(findings.broken_chains),
            "other_faults_of_counting": {
                name: list(found)
                for name, found in findings.faults.items()
                if name in ("unused", "unknown", "differing", "unfounded", "miscounted", "unsound")
            },
            "attempts_beyond_the_first": findings.num_takeovers,
            "early_acknowledgements": list(self.early_acknowledgements),
            "looks_while_running": self.num_looks,
            "waits": {what.value: asdict(found) for what, found in self.audit.metrics().items()},
            "leases_s": {what.value: lease for what, lease in self.leases_s.items()},
            "unexplained_waits": [str(late) for late in self.late],
            "faults": len(self.faults),
            "faults_by_kind": kinds_counted(self.faults),
            "faults_skipped": dict(self.skipped),
            "restarts": self.num_restarts,
            "slowness_of_the_machine": self.highest_slowness,
            "duration_s": round(self.duration_s, 1),
            "peak_memory_mib": dict(self.peak_memory_mib),
            "failure": self.failure or self.incomplete,
        }

    def write(self, file: Path) -> None:
        details = self.audit.as_json() | self.as_json()
        file.write_text(json.dumps(details, indent=2) + "\n", encoding="utf-8")

    def table(self) -> Table:
        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        for name, value in self.as_json().items():
            if name not in ("command", "holds", "waits", "leases_s"):
                table.add_row(name.replace("_", " "), _shown(value))
        for what, found in self.audit.metrics().items():
            shown = f"{found.p50_s:.2f} / {found.p99_s:.2f} / {found.max_s:.2f} of {found.num_waits}"
            table.add_row(f"wait for {what.value}, p50 / p99 / max s", f"{shown} (lease {self.leases_s[what]:g})")
        return table


def _shown(value: object) -> str:
    match value:
        case dict():
            shown = {key: item for key, item in value.items() if item != []}
            return ", ".join(f"{key} {item}" for key, item in shown.items()) or "none"
        case list():
            more = f" and {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
            return "; ".join(map(str, value[:_SHOWN])) + more or "0"
        case _:
            return str(value) or "none"
