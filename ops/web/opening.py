"""Opens what the viewer is given to show: a run with its streams, or an archive."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ops.archive.opening import open_source
from ops.archive.stream_source import StreamSource
from ops.web.store import Shown
from ops.web.stream_store import StreamStore


@asynccontextmanager
async def open_store(path: Path) -> AsyncIterator[Shown]:
    """Opens a run, whose own server is started for the while when it is not up, or an archive.

    Raises:
        ConfigurationError: the folder holds neither.
    """
    async with open_source(path, name="viewer") as opened:
        if isinstance(opened.source, StreamSource):
            yield Shown(store=StreamStore(opened.source.bus, opened.source.subjects), config=opened.config, kind="run")
            return
        from ops.web.archive_store import ArchiveStore

        assert opened.archive is not None
        yield Shown(store=ArchiveStore(opened.archive), config=opened.config, kind="archive")
