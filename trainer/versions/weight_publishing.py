"""The newest versions' files on the bus, for policies that do not share the trainer's disk: whole, or as what changed since
the version before.

Invariant: a version is announced only when all that its files can be made of is stored, and the newest announced versions stay
so. What is there already is not sent again, whatever was killed: a file's chunks stand under the file's own hash.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

import anyio
import anyio.to_thread
import msgspec
import structlog

from bus.ports import Bus
from bus.side_by_side import side_by_side
from bus.subjects import Subjects
from bus.weight_chunks import Stretch, chunk_bytes, chunk_of, put, stored, stored_files, stretches
from bus.weight_routes import Catalogue, is_stored_on, shortest_route
from schemas.bus_config import BusConfig
from schemas.errors import CheckpointCorrupt, StreamFull, TrainerError
from schemas.messages import Checkpoint, FileHash, WeightChunk
from trainer.retrying import until_available
from trainer.versions.checkpoints import folder_of
from trainer.versions.weight_differencing import DifferenceFiles, pairs_of

_NUM_SENDERS = 4
"""Chunks on their way at once: enough to keep server and disk busy, little enough to let heartbeats through."""
_PROGRESS_S = 5.0
_log = structlog.get_logger()


class WeightPublisher:
    """Sends versions and removes old ones, for one run's trainer."""

    def __init__(self, bus: Bus, subjects: Subjects, config: BusConfig) -> None:
        self._bus = bus
        self._subjects = subjects
        self._config = config
        self._chunk_bytes = chunk_bytes(config.max_payload_bytes)

    @property
    def num_kept(self) -> int:
        """Latest versions that stay stored."""
        return self._config.weights_kept

    async def with_differences(self, folder: Path, checkpoint: Checkpoint, announced: Sequence[Checkpoint]) -> Checkpoint:
        """The same version, with differences from the newest announced one where these are worth it.

        `announced`: oldest first.
        """
        before, catalogue = announced[-1], Catalogue.of(announced)
        pairs = [
            pair
            for pair in pairs_of(checkpoint, before, catalogue, folder=folder, base_folder=folder_of(before.uri))
            if await self._can_be_had(pair.base, catalogue)
        ]
        differences = await anyio.to_thread.run_sync(DifferenceFiles.beside(folder).written, pairs)
        return msgspec.structs.replace(checkpoint, differences=tuple(differences))

    async def send(self, folder: Path, checkpoint: Checkpoint, announced: Sequence[Checkpoint] = ()) -> None:
        """Returns once everything is stored that a policy makes this version's files of.

        `announced`: before it, oldest first.

        Raises:
            TrainerError: WEIGHTS has no room for one more version.
            CheckpointCorrupt: a file cannot be read.
        """
        differences = {difference.sha256: difference for difference in checkpoint.differences}
        catalogue, files = Catalogue.of(announced), DifferenceFiles.beside(folder)
        jobs = list[_Job]()
        for file in {file.sha256: file for file in checkpoint.policy_files}.values():
            difference = differences.get(file.sha256)
            base = catalogue.files.get(difference.base_sha256) if difference is not None else None
            if difference is not None and base is not None and await self._can_be_had(base, catalogue):
                unsent = await self._unsent(difference.file)
                path = files.path(difference)
                if not unsent or path.is_file():
                    jobs += [_Job(path, difference.file, stretch) for stretch in unsent]
                    continue
            jobs += [_Job(folder / file.path, file, stretch) for stretch in await self._unsent(file)]
        progress = _Progress(checkpoint.version, sum(job.stretch.end - job.stretch.begin for job in jobs))

        async def send_one(job: _Job) -> None:
            await self._send_chunk(job, progress)

        await side_by_side(jobs, send_one, num_loops=_NUM_SENDERS)
        progress.ended()

    async def keep(self, kept_versions: Sequence[Checkpoint], announced: Sequence[Checkpoint]) -> None:
        """Removes every file that none of the kept versions is made of. `announced`: all of them, oldest first."""
        kept = Catalogue.of(announced).needed(kept_versions)
        newest = max(kept_versions, key=lambda checkpoint: checkpoint.version)
        if newest.version > 0:  # the base model's folder stands elsewhere, maybe among another run's
            await anyio.to_thread.run_sync(DifferenceFiles.beside(folder_of(newest.uri)).prune, kept)
        for sha256 in await until_available(partial(stored_files, self._bus, self._subjects)) - kept:
            await until_available(partial(self._bus.purge, self._subjects.weight_chunks, self._subjects.weights_of(sha256)))
            _log.info("weights_removed", file_sha256=sha256[:12])

    async def _can_be_had(self, file: FileHash, catalogue: Catalogue) -> bool:
        """By whoever has nothing yet."""
        is_stored = is_stored_on(self._bus, self._subjects)
        look = partial(shortest_route, file, catalogue, is_here=lambda _: False, is_stored=is_stored)
        return await until_available(look) is not None

    async def _unsent(self, file: FileHash) -> list[Stretch]:
        held = await until_available(partial(stored, self._bus, self._subjects, file.sha256))
        return [stretch for stretch in stretches(file.num_bytes, self._chunk_bytes) if stretch not in held]

    async def _send_chunk(self, job: "_Job", progress: "_Progress") -> None:
        chunk = await anyio.to_thread.run_sync(_read, job)
        try:
            await until_available(partial(put, self._bus, self._subjects, chunk), outlasts_full=False)
        except StreamFull as error:
            raise TrainerError(
                f"WEIGHTS has no room for version {progress.version} ({error}): raise bus_config.weights_max_gb to "
                f"{self._config.weights_kept + 1} versions, or give the server more disk"
            ) from error
        progress.sent(len(chunk.data))


class _Job(NamedTuple):
    """One chunk to send."""

    path: Path
    file: FileHash
    stretch: Stretch


def _read(job: _Job) -> WeightChunk:
    try:
        with job.path.open("rb") as opened:
            return chunk_of(job.file, job.stretch.begin, _exactly(opened, job.stretch))
    except OSError as error:
        raise CheckpointCorrupt(f"{job.path} cannot be read: {error.strerror}") from error


def _exactly(file: BinaryIO, stretch: Stretch) -> bytes:
    file.seek(stretch.begin)
    data = file.read(stretch.end - stretch.begin)
    if len(data) != stretch.end - stretch.begin:
        raise CheckpointCorrupt(f"{file.name} is shorter than when it was hashed")
    return data


class _Progress:
    """Says now and then how far a version is."""

    def __init__(self, version: int, num_bytes: int) -> None:
        self.version = version
        self._num_bytes = num_bytes
        self._num_sent = 0
        self._begun_at = self._said_at = anyio.current_time()

    def sent(self, num_bytes: int) -> None:
        self._num_sent += num_bytes
        if anyio.current_time() - self._said_at >= _PROGRESS_S:
            self._said_at = anyio.current_time()
            _log.info("weights_sending", version=self.version, sent_mb=self._num_sent // 10**6, of_mb=self._num_bytes // 10**6)

    def ended(self) -> None:
        seconds = anyio.current_time() - self._begun_at
        _log.info("weights_sent", version=self.version, megabytes=round(self._num_sent / 1e6, 1), seconds=round(seconds, 2))
