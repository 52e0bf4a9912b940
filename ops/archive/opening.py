"""Opens what a person names as a source: an archive's folder, or a run's folder with its streams."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ops.archive.episodes import EpisodeSource
from ops.archive.folder import ArchiveFolder
from ops.archive.stream_source import StreamSource
from ops.config.loading import load_config
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.served import served
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.extras import require_extra


@dataclass(frozen=True)
class Opened:
    """A source, with the configuration of the run that it is from."""

    source: EpisodeSource
    config: Config
    archive: ArchiveFolder | None
    """None: the source is the run itself."""


@asynccontextmanager
async def open_source(path: Path, *, name: str) -> AsyncIterator[Opened]:
    """A run's own server is started for the while when it is not up.

    Raises:
        ConfigurationError: the folder holds neither an archive nor a run.
    """
    archive = ArchiveFolder(path)
    if archive.is_archive:
        require_extra("pyarrow", "archive")
        from ops.archive.archive_source import ArchiveSource

        yield Opened(ArchiveSource(archive), load_config(archive.config), archive)
        return
    run = RunFolder(path)
    if not run.config.is_file():
        raise ConfigurationError(f"{path} holds neither an archive nor a run: give the folder of one")
    config = run.load()
    async with served(run, config), join(run, config, role="consumer", name=name) as bus:
        yield Opened(StreamSource(bus, subjects_of(config)), config, None)
