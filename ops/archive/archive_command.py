"""`millrace archive`: copies a run to files, once or for as long as it goes on; `--verify` checks what was copied."""

from dataclasses import asdict
from pathlib import Path

import anyio.to_thread
from rich.table import Table

from bus.bulkhead import Bulkhead
from ops.archive.archiver import Archived, Archiver
from ops.archive.folder import ArchiveFolder
from ops.archive.progress import progress_line
from ops.archive.verify import Verified, verify
from ops.configuration import dump_config
from ops.roles import Post, join, subjects_of
from ops.run_folder import RunFolder
from ops.served import served
from ops.terminal import Console
from schemas.config import Config

_SHOWN = 20


async def once(run: RunFolder, config: Config, name: str) -> int:
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
    Console().print(f"{_line(done)} to {folder.path}", soft_wrap=True, highlight=False)
    return 0


async def follow(post: Post) -> None:
    """The role: archives until it is stopped."""
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
        console.print(f"  and {len(found.damaged) - _SHOWN} more", style="red")
    return 1 if found.damaged else 0


def archive_folder(run: RunFolder, config: Config) -> ArchiveFolder:
    configured = config.archive_config.folder
    return ArchiveFolder(Path(configured).expanduser().resolve() if configured else run.path / "archive")


def _line(done: Archived) -> str:
    gaps = f", {done.num_gaps} gaps (see gaps.jsonl)" if done.num_gaps else ""
    return (
        f"{done.num_episodes} episodes, {done.num_judgements} judgements, "
        f"{done.picture_bytes / 1e6:.1f} MB of pictures in {done.num_parts} parts{gaps}"
    )


def _verified_line(found: Verified) -> str:
    return f"{found.num_episodes} episodes, {found.num_records} records, {found.num_judgements} judgements"
