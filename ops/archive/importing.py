"""Writes the episodes of an archive, or of another run, into a run's streams, with progress on the terminal."""

from pathlib import Path

import anyio.to_thread

from ops.archive.importer import Imported, Importer
from ops.archive.opening import open_source
from ops.archive.progress import progress_line
from ops.archive.verify import refuse_damage
from ops.console.terminal import Console
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.served import served
from schemas.config import Config


async def import_episodes(source: Path, run: RunFolder, config: Config, *, judgements: bool) -> int:
    """Every hash of an archive is checked before anything is written."""
    async with open_source(source, name="import-source") as opened:
        if opened.archive is not None:
            await anyio.to_thread.run_sync(refuse_damage, opened.archive)
        with progress_line() as show:
            async with served(run, config), join(run, config, role="replayer", name="import") as bus:
                importer = Importer(
                    bus=bus,
                    subjects=subjects_of(config),
                    judgements=judgements,
                    progress=lambda done: show(_line(done)),
                )
                done = await importer.run(opened.source)
    Console().print(f"{_line(done)} into run {config.bus_config.run}", soft_wrap=True, highlight=False, markup=False)
    return 0


def _line(done: Imported) -> str:
    return (
        f"{done.num_episodes} episodes: {done.num_records} records and {done.num_judgements} judgements written, "
        f"{done.num_known} were there already"
    )
