"""Carries a drill out with progress on the terminal, and writes its report."""

import anyio
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ops.console.output_folder import make_output
from ops.console.terminal import Console
from ops.drills.drill import Drill
from ops.drills.settings import DrillSettings
from ops.run.logs import role_logs

_REFRESH_S = 0.5


async def drill_main(settings: DrillSettings, *, command: str) -> int:
    """Returns 0 when every promise was kept, 1 when one was broken."""
    console = Console()
    drill = Drill(settings, command=command)
    logs = make_output(settings.folder.resolve() / "logs")
    # The terminal belongs to the progress bar; what happens is in the log.
    with (
        (logs / "drill.out").open("a") as output,
        role_logs(logs / "drill.log", run="chaos", role="drill", worker="", stream=output),
    ):
        async with anyio.create_task_group() as group:
            group.start_soon(_show, drill, console)
            report = await drill.run()
            group.cancel_scope.cancel()
    report.write(settings.folder / "report.json")
    console.print(report.table())
    console.print("[bold green]every promise was kept[/]" if report.holds else "[bold red]a promise was broken[/]")
    console.print(f"figures   {settings.folder / 'report.json'}", soft_wrap=True, highlight=False)
    return 0 if report.holds else 1


async def _show(drill: Drill, console: Console) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("episodes judged, {task.fields[faults]} faults"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, faults=0)
        while True:
            now = drill.progress
            bar.update(
                task, description=now.phase, completed=now.num_judged, total=now.num_expected or None, faults=now.num_faults
            )
            await anyio.sleep(_REFRESH_S)
