"""Where finished episodes are read from: the port that the viewer knows, and what opens it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ops.archive.episodes import StoredEpisode
from ops.archive.opening import open_source
from ops.archive.stream_source import StreamSource
from ops.web.index import EpisodeIndex
from schemas.config import Config
from schemas.ids import EpisodeId
from schemas.messages import JudgeCall


@dataclass(frozen=True, slots=True)
class Fetched:
    """One episode, as far as it can be read."""

    episode: StoredEpisode
    problems: tuple[str, ...] = ()
    """Sentences about what cannot."""


class TrajectoryStore(Protocol):
    @property
    def keeps_calls(self) -> bool:
        """Whether what judges' models answered is kept here."""
        ...

    async def fill(self, index: EpisodeIndex) -> None:
        """Reads every episode and judgement into the index, and those that come. Runs until cancelled."""
        ...

    async def episode(self, episode: EpisodeId) -> Fetched | None:
        """None: nothing of it is kept.

        Raises:
            BusUnavailable: no server answers.
            ArchiveDamaged: its row cannot be read.
        """
        ...

    async def calls(self, rubric: str, episode: EpisodeId) -> Sequence[JudgeCall]:
        """What a rubric's models answered, in order. Raises `BusUnavailable`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What the viewer was given to show."""

    store: TrajectoryStore
    config: Config
    """Of the run that played the episodes."""
    kind: str
    """`run` or `archive`."""


@asynccontextmanager
async def open_store(path: Path) -> AsyncIterator[Shown]:
    """Opens a run, whose own server is started for the while when it is not up, or an archive.

    Raises:
        ConfigurationError: the folder holds neither.
    """
    from ops.web.stream_store import StreamStore

    async with open_source(path, name="viewer") as opened:
        if isinstance(opened.source, StreamSource):
            yield Shown(store=StreamStore(opened.source.bus, opened.source.subjects), config=opened.config, kind="run")
            return
        from ops.web.archive_store import ArchiveStore

        assert opened.archive is not None
        yield Shown(store=ArchiveStore(opened.archive), config=opened.config, kind="archive")
