"""`millrace audit`: counts a run from its streams and says whether every promise about counting holds."""

from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from ops.audit.audit import Audit, audit
from ops.audit.promises import Findings
from ops.console.terminal import Console
from ops.run.folder import RunFolder
from ops.run.joining import join
from ops.run.served import served

_SHOWN = 5


async def main(run_dir: Path) -> int:
    """Returns 0 when everything holds, 1 when something is lost or doubled, or still open.

    The run's own server is started for the while, when it is not up.
    """
    folder = RunFolder(run_dir)
    config = folder.load()
    async with served(folder, config), join(folder, config, role="monitor", name="audit") as bus:
        found = await audit(bus, config)
    console = Console()
    console.print(audit_table(found))
    console.print(
        "[bold green]every admitted task has one trajectory and one judgement[/]" if found.holds else _faults(found.findings)
    )
    return 0 if found.holds else 1


def audit_table(found: Audit) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in asdict(found.findings).items():
        table.add_row(name, f"[bold]{len(value) if isinstance(value, tuple) else value}[/]")
    for what, seconds in found.figures().items():
        shown = f"{seconds.p50_s:.3f} / {seconds.p99_s:.3f} / {seconds.max_s:.3f}"
        table.add_row(f"{what.value} p50/p99/max s", f"[bold]{shown}[/] ({seconds.num_waits})")
    return table


def _faults(findings: Findings) -> str:
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
