"""Runs an archiver: copies the run's records to files until it is stopped."""

from dataclasses import asdict

from bus.bulkhead import Bulkhead
from ops.archive.archiver import Archived, Archiver
from ops.archive.folder import archive_folder
from ops.config.loading import dump_config
from ops.run.joining import Post


async def archive(post: Post) -> None:
    """Archives until it is stopped."""
    folder = archive_folder(post.folder, post.config)

    def report(done: Archived) -> None:
        post.status.metrics = {name: float(count) for name, count in asdict(done).items()}

    with folder.writing(post.subjects.run, dump_config(post.config)):
        post.status.state = "working"
        archiver = Archiver(
            bus=post.bus,
            subjects=post.subjects,
            folder=folder,
            config=post.config.archive_config,
            bus_config=post.config.bus_config,
            progress=report,
            bulkhead=Bulkhead(post.bus, post.subjects, post.status),
        )
        await archiver.run()
