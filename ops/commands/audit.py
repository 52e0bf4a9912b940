"""Counts tasks, trajectories and judgements from the streams, and says whether every promise holds."""

import argparse

from ops.audit.audit import audit
from ops.audit.display import audit_table, faults_text
from ops.commands.arguments import add_run_dir
from ops.commands.execution import interruptible
from ops.console.terminal import Console
from ops.run.folder import RunFolder
from ops.run.joining import join
from ops.run.served import served


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_dir(parser)


@interruptible
async def run(options: argparse.Namespace) -> int:
    """Returns 0 when everything holds, 1 when something is lost or doubled, or still open.

    The run's own server is started for the while, when it is not up.
    """
    folder = RunFolder(options.run_dir.resolve())
    config = folder.load()
    async with served(folder, config), join(folder, config, role="monitor", name="audit") as bus:
        found = await audit(bus, config)
    console = Console()
    console.print(audit_table(found))
    console.print(
        "[bold green]every admitted task has one trajectory and one judgement[/]"
        if found.holds
        else faults_text(found.findings)
    )
    return 0 if found.holds else 1
