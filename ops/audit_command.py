"""`millrace audit`: counts a run from its streams and says whether every promise about counting holds."""

from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ops.audit import Audit, audit
from ops.logs import quiet_logs
from ops.roles import join, subjects_of
from ops.run_folder import RunFolder
from ops.served import served

_SHOWN = 5


async def main(run_dir: Path) -> int:
    """Returns 0 when everything holds, 1 when something is lost or doubled.

    The run's own server is started for the while, when it is not up.
    """
    quiet_logs()
    folder = RunFolder(run_dir)
    config = folder.load()
    async with served(folder, config), join(folder, config, role="monitor", name="audit") as bus:
        counts = await audit(bus, subjects_of(config), chains=True)
    console = Console()
    console.print(_table(counts))
    console.print(
        "[bold green]every admitted task has one trajectory and one judgement[/]" if counts.holds else _faults(counts)
    )
    return 0 if counts.holds else 1


def _table(counts: Audit) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in asdict(counts).items():
        table.add_row(name, f"[bold]{len(value) if isinstance(value, tuple) else value}[/]")
    return table


def _faults(counts: Audit) -> str:
    lines = ["[bold red]the counts do not hold (a run that is still going on has unfinished and unjudged episodes)[/]"]
    for name, value in asdict(counts).items():
        if isinstance(value, tuple) and value:
            more = f" and {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
            lines.append(f"  {name}: {', '.join(value[:_SHOWN])}{more}")
    return "\n".join(lines)
