"""What is replayed: the streams of a run, or an archive, each with the configuration that it was made with."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bus.ports import Bus
from bus.subjects import Subjects
from ops.archive.archive_source import ArchiveSource
from ops.archive.episodes import EpisodeSource
from ops.archive.folder import ArchiveFolder
from ops.archive.stream_source import StreamSource
from ops.roles import join, subjects_of
from ops.run_folder import RunFolder
from ops.served import served
from schemas.errors import ConfigurationError
from schemas.messages import Checkpoint


@dataclass(frozen=True, kw_only=True)
class ReplaySource:
    """Opened by `open_source`."""

    episodes: EpisodeSource
    config: Path
    """The stored configuration of the run that played the episodes."""
    num_episodes: int | None = None
    """None: only known at the end."""
    checkpoints: Sequence[Checkpoint] = ()
    """Versions that may have played them; an archive holds none."""


@asynccontextmanager
async def open_source(path: Path) -> AsyncIterator[ReplaySource]:
    """Opens the folder of a run, whose own server is started for the while when it is not up, or of an archive.

    Raises:
        ConfigurationError: it is neither.
    """
    archive, folder = ArchiveFolder(path), RunFolder(path)
    if archive.is_archive:
        yield ReplaySource(episodes=ArchiveSource(archive), config=archive.config)
        return
    if not folder.config.is_file():
        raise ConfigurationError(f"{path} is neither the folder of a run nor an archive: give one that holds a config.yaml")
    config = folder.load()
    subjects = subjects_of(config)
    async with served(folder, config), join(folder, config, name="replay-source") as bus:
        yield ReplaySource(
            episodes=StreamSource(bus, subjects),
            config=folder.config,
            num_episodes=len(await bus.subjects(subjects.trajectories, subjects.everything("trajectory"))),
            checkpoints=await checkpoints(bus, subjects),
        )


async def checkpoints(bus: Bus, subjects: Subjects) -> list[Checkpoint]:
    """Every announced version of a run, oldest first."""
    records = await bus.history(subjects.checkpoints, subjects.everything("checkpoint"))
    return [record.message for record in records if isinstance(record.message, Checkpoint)]
