"""Runs an archiver: copies the run's records to files until it is stopped."""

from dataclasses import asdict

from bus.bulkhead import Bulkhead
from ops.archive.archiver import Archived, Archiver
from ops.archive.folder import archive_folder
from ops.config.loading import dump_config
from ops.run.joining import RoleRun


async def archive(run: RoleRun) -> None:
    """Archives until it is stopped."""
    folder = archive_folder(run.folder, run.config)

    def report(done: Archived) -> None:
        run.context.status.metrics = {name: float(count) for name, count in asdict(done).items()}

    with folder.writing(run.context.subjects.run, dump_config(run.config)):
        run.context.status.state = "working"
        archiver = Archiver(
            bus=run.context.bus,
            subjects=run.context.subjects,
            folder=folder,
            config=run.config.archive_config,
            bus_config=run.config.bus_config,
            progress=report,
            bulkhead=Bulkhead(run.context),
        )
        await archiver.run()
