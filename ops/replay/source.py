"""Opens what is replayed: the streams of a run, or an archive, each with the configuration that it was made with."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bus.lineage import all_announced
from ops.archive.episodes import EpisodeSource
from ops.archive.opening import open_source
from ops.archive.stream_source import StreamSource
from ops.run.folder import RunFolder
from schemas.messages import Checkpoint


@dataclass(frozen=True, kw_only=True)
class ReplaySource:
    """Opened by `open_replay`."""

    episodes: EpisodeSource
    config: Path
    """The stored configuration of the run that played the episodes."""
    num_episodes: int | None = None
    """None: only known at the end."""
    checkpoints: Sequence[Checkpoint] = ()
    """Versions that may have played them; an archive holds none."""


@asynccontextmanager
async def open_replay(path: Path) -> AsyncIterator[ReplaySource]:
    """Opens the folder of a run, whose own server is started for the while when it is not up, or of an archive.

    Raises:
        ConfigurationError: it is neither.
    """
    async with open_source(path, name="replay-source") as opened:
        # Runs and archives keep it under the same name.
        config = RunFolder(path).config
        match opened.source:
            case StreamSource(bus=bus, subjects=names):
                yield ReplaySource(
                    episodes=opened.source,
                    config=config,
                    num_episodes=len(await bus.subjects(names.trajectories, names.everything("trajectory"))),
                    checkpoints=await all_announced(bus, names),
                )
            case source:
                yield ReplaySource(episodes=source, config=config)
