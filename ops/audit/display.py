"""Draws what an audit found."""

from dataclasses import asdict

from rich.table import Table

from ops.audit.audit import Audit
from ops.audit.promises import Findings

_SHOWN = 5


def audit_table(found: Audit) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in asdict(found.findings).items():
        table.add_row(name, f"[bold]{len(value) if isinstance(value, tuple) else value}[/]")
    for what, seconds in found.metrics().items():
        shown = f"{seconds.p50_s:.3f} / {seconds.p99_s:.3f} / {seconds.max_s:.3f}"
        table.add_row(f"{what.value} p50/p99/max s", f"[bold]{shown}[/] ({seconds.num_waits})")
    return table


def faults_text(findings: Findings) -> str:
    lines = [
        "[bold yellow]nothing is broken; what is open is lost if the run has ended[/]"
        if findings.holds_so_far
        else "[bold red]a promise was broken[/]"
    ]
    if findings.num_duplicates:
        lines.append(f"  duplicates: {findings.num_duplicates}")
    for name, faults in findings.faults.items():
        if faults:
            more = f" and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
            lines.append(f"  {name}: {', '.join(faults[:_SHOWN])}{more}")
    return "\n".join(lines)
