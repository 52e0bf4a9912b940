"""Which checkpoint to serve: the newest announced one that can be had here and is what was announced."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import structlog

from agents.weight_sources import WeightSources
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
        self._seq = 0
        """Announcements up to this one were loaded, skipped, or found corrupt."""

    async def catch_up(self, heard: Record | None = None) -> None:
        """Loads the newest sound checkpoint announced so far, if it is newer than what is served.

        What was `heard` counts even where the replica that is asked now does not have it yet.
        """
        found = await self._bus.last(self._subjects.checkpoints, self._filter)
        newest = max((record for record in (found, heard) if record is not None), key=lambda record: record.seq, default=None)
        if newest is None:
            return
        self._seq = max(self._seq, newest.seq)
        if await self._try(newest):
            return
        announced = await self._bus.history(self._subjects.checkpoints, self._filter)
        for record in sorted(announced, key=_version, reverse=True):
            if record.seq != newest.seq and await self._try(record):
                return

    async def follow(self) -> None:
        """Loads what is announced from now on; never returns."""
        async with self._bus.tail(self._subjects.checkpoints, self._filter, after_seq=self._seq) as records:
            async for record in records:
                if record.seq > self._seq:
                    await self._catch_up_patiently(record)

    async def _catch_up_patiently(self, heard: Record) -> None:
        """Outlasts a server that is away: the old weights are served meanwhile."""
        while True:
            try:
                return await self.catch_up(heard)
            except BusError as error:
                _log.warning("checkpoints_unseen", reason=str(error))
                await anyio.sleep(_RETRY_S)

    @property
    def _filter(self) -> str:
        return self._subjects.everything("checkpoint")

    async def _try(self, record: Record) -> bool:
        """Whether what this record announces is served now, or is no newer than what is."""
        checkpoint = record.message
        assert isinstance(checkpoint, Checkpoint)
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


def _version(record: Record) -> int:
    assert isinstance(record.message, Checkpoint)
    return record.message.version
