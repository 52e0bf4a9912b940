"""Carries a drill out with progress on the terminal, and writes its report."""

import time

from ops.console.output_folder import make_output
from ops.console.terminal import Console
from ops.drills.drill import PHASES, Drill
from ops.drills.settings import DrillSettings
from ops.monitor.dashboard import dashboard
from ops.monitor.view import Progress, View
from ops.run.logs import role_logs


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
        began = time.monotonic()
        async with dashboard(lambda: _view(drill, time.monotonic() - began), console):
            report = await drill.run()
    report.write(settings.folder / "report.json")
    console.print(report.table())
    console.print("[bold green]every promise was kept[/]" if report.holds else "[bold red]a promise was broken[/]")
    console.print(f"metrics   {settings.folder / 'report.json'}", soft_wrap=True, highlight=False, markup=False)
    return 0 if report.holds else 1


def _view(drill: Drill, elapsed_s: float) -> View:
    now = drill.progress
    return View(
        title="Millrace chaos",
        phases=PHASES,
        phase=PHASES.index(now.phase),
        elapsed_s=elapsed_s,
        progress=(
            Progress(
                label="episodes judged", done=now.num_judged, total=now.num_expected or None, note=f"{now.num_faults} faults"
            ),
        ),
    )
