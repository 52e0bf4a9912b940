"""Which checkpoint to serve: the newest announced one whose files are what was announced."""

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import anyio
import anyio.to_thread
import structlog

from bus.ports import Bus, Record
from bus.subjects import Subjects
from schemas.errors import BusError, CheckpointCorrupt
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint

_log = structlog.get_logger()
_RETRY_S = 1.0

Load = Callable[[Path, PolicyVersion], Awaitable[None]]


class AnnouncedWeights:
    """Follows CHECKPOINTS. Versions announced while one is loading are skipped up to the newest."""

    def __init__(self, bus: Bus, subjects: Subjects, load: Load, version: PolicyVersion) -> None:
        self._bus = bus
        self._subjects = subjects
        self._load = load
        self._version = version
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
        if checkpoint.version <= self._version:
            return True
        try:
            folder = await verified_folder(checkpoint)
        except CheckpointCorrupt as error:
            _log.error("checkpoint_refused", version=checkpoint.version, served=self._version, reason=str(error))
            return False
        await self._load(folder, checkpoint.version)
        self._version = checkpoint.version
        return True


def _version(record: Record) -> int:
    assert isinstance(record.message, Checkpoint)
    return record.message.version


async def verified_folder(checkpoint: Checkpoint) -> Path:
    """The checkpoint's folder, after every file was compared with its hash.

    Raises:
        CheckpointCorrupt: a file is missing or differs, or the checkpoint is nowhere on this machine's file systems.
    """
    place = urlsplit(checkpoint.uri)
    if place.scheme != "file" or place.netloc not in ("", "localhost"):
        raise CheckpointCorrupt(f"{checkpoint.uri} is not a file:// folder, the only kind that can be loaded")
    folder = Path(url2pathname(place.path))
    await anyio.to_thread.run_sync(_verify, folder, checkpoint)
    return folder


def _verify(folder: Path, checkpoint: Checkpoint) -> None:
    if not checkpoint.files:
        raise CheckpointCorrupt(f"{checkpoint.uri} was announced without files")
    for file in checkpoint.files:
        path = folder / file.path
        if not path.resolve().is_relative_to(folder.resolve()):
            raise CheckpointCorrupt(f"{file.path} lies outside {folder}")
        try:
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise CheckpointCorrupt(f"{path} cannot be read: {error.strerror}") from error
        if digest != file.sha256:
            raise CheckpointCorrupt(f"{path} does not match its hash")
