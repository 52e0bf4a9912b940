"""Which checkpoint to serve: the newest announced one that can be had here and is what was announced."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import structlog

from agents.weight_sources import WeightSources
from bus.lineage import Lineage, catch_up
from bus.ports import Bus, Record
from bus.subjects import Subjects
from schemas.errors import BusError, CheckpointCorrupt, PolicyError
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint

_log = structlog.get_logger()
_RETRY_S = 1.0

Load = Callable[[Path, PolicyVersion], Awaitable[None]]


class AnnouncedWeights:
    """Follows CHECKPOINTS. Versions announced while one is loading are skipped up to the newest."""

    def __init__(self, bus: Bus, subjects: Subjects, load: Load, version: PolicyVersion, sources: WeightSources) -> None:
        """`version`: what is served already."""
        self._bus = bus
        self._subjects = subjects
        self._load = load
        self._version = version
        self._sources = sources
        self._unconfirmed = sources.base if version == 0 else None
        """Served as version 0, but not compared yet with what the trainer announced under that name."""
        self._lineage = Lineage()
        """Announcements up to its sequence were loaded, skipped, or found corrupt."""

    async def catch_up(self, heard: Record | None = None) -> None:
        """Loads the newest sound checkpoint announced so far, if it is newer than what is served.

        What was `heard` counts even where the replica that is asked now does not have it yet.
        """
        lineage = await catch_up(self._lineage, self._bus, self._subjects)
        if heard is not None:
            lineage.takes(heard)
        for version in sorted(lineage.known, reverse=True):
            if await self._try(lineage.known[version]):
                return

    async def follow(self) -> None:
        """Loads what is announced from now on; never returns."""
        everything = self._subjects.everything("checkpoint")
        async with self._bus.tail(self._subjects.checkpoints, everything, after_seq=self._lineage.seq) as records:
            async for record in records:
                if record.seq > self._lineage.seq:
                    await self._catch_up_patiently(record)

    async def _catch_up_patiently(self, heard: Record) -> None:
        """Outlasts a server that is away: the old weights are served meanwhile."""
        while True:
            try:
                return await self.catch_up(heard)
            except BusError as error:
                _log.warning("checkpoints_unseen", reason=str(error))
                await anyio.sleep(_RETRY_S)

    async def _try(self, checkpoint: Checkpoint) -> bool:
        """Whether this version is served now, or is no newer than what is."""
        if checkpoint.version < self._version or (checkpoint.version == self._version and self._unconfirmed is None):
            return True
        try:
            folder = await self._sources.folder(checkpoint)
        except (CheckpointCorrupt, PolicyError) as error:
            _log.error("checkpoint_refused", version=checkpoint.version, served=self._version, reason=str(error))
            return False
        if folder != self._unconfirmed:
            await self._load(folder, checkpoint.version)
        self._version, self._unconfirmed = checkpoint.version, None
        return True
