"""Archives what a run holds now, and checks an archive, with progress on the terminal."""

from dataclasses import asdict
from pathlib import Path

import anyio.to_thread
from rich.table import Table

from ops.archive.archiver import Archived, Archiver
from ops.archive.folder import ArchiveFolder, archive_folder
from ops.archive.progress import progress_line
from ops.archive.verify import Verified, verify
from ops.config.loading import dump_config
from ops.console.terminal import Console
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.served import served
from schemas.config import Config

_SHOWN = 20


async def archive_once(run: RunFolder, config: Config, name: str) -> int:
    """Archives what the run's streams hold now. The run's own server is started for the while when it is not up."""
    folder = archive_folder(run, config)
    subjects = subjects_of(config)
    with progress_line() as show, folder.writing(subjects.run, dump_config(config)):
        async with served(run, config), join(run, config, role="archiver", name=name) as bus:
            archiver = Archiver(
                bus=bus,
                subjects=subjects,
                folder=folder,
                config=config.archive_config,
                bus_config=config.bus_config,
                progress=lambda done: show(_line(done)),
            )
            done = await archiver.run(once=True)
    Console().print(f"{_line(done)} to {folder.path}", soft_wrap=True, highlight=False, markup=False)
    return 0


async def check(path: Path) -> int:
    """Returns 0 when every hash holds, 1 when something is damaged or missing."""
    with progress_line() as show:
        found = await anyio.to_thread.run_sync(verify, ArchiveFolder(path), lambda so_far: show(_verified_line(so_far)))
    console = Console()
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, count in asdict(found).items():
        table.add_row(name, f"[bold]{len(count) if isinstance(count, list) else count}[/]")
    console.print(table)
    for fault in found.damaged[:_SHOWN]:
        console.print(f"  {fault}", style="red", markup=False, soft_wrap=True)
    if len(found.damaged) > _SHOWN:
        console.print(f"  and {len(found.damaged) - _SHOWN} more", style="red", markup=False)
    return 1 if found.damaged else 0


def _line(done: Archived) -> str:
    gaps = f", {done.num_gaps} gaps (see gaps.jsonl)" if done.num_gaps else ""
    return (
        f"{done.num_episodes} episodes, {done.num_judgements} judgements, "
        f"{done.screenshot_bytes / 1e6:.1f} MB of screenshots in {done.num_parts} parts{gaps}"
    )


def _verified_line(found: Verified) -> str:
    return f"{found.num_episodes} episodes, {found.num_records} records, {found.num_judgements} judgements"
