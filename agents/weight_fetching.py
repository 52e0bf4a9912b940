"""Fetches a version's files over the bus into the cache: only what is not there yet, or has changed since the version that is,
each piece and each file verified."""

from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from agents.partial_file import PartialFile
from agents.weight_cache import WeightCache
from agents.weight_files import verify_folder
from bus.lineage import Lineage, catch_up
from bus.ports import Bus
from bus.retry import Budget
from bus.side_by_side import side_by_side
from bus.subjects import Subjects
from bus.weight_chunks import Stretch, get, missing, stored, verified
from bus.weight_routes import Catalogue, Route, is_stored_on, shortest_route
from schemas.errors import CheckpointCorrupt, MessageCorrupt, WeightsUnavailable
from schemas.messages import Checkpoint, FileHash, WeightChunk

_NUM_LOOPS = 4
_LOOK_AGAIN_S = 0.25
_LOOK_S = 1.0
"""A look and the pause behind it count as waiting for no longer: a machine that stood still has not waited."""
_PROGRESS_S = 5.0
_log = structlog.get_logger()


class WeightFetcher:
    """Fetches for one policy worker."""

    def __init__(self, bus: Bus, subjects: Subjects, cache: WeightCache, *, timeout_s: float) -> None:
        """`timeout_s`: how long a piece that is missing is waited for."""
        self._bus = bus
        self._subjects = subjects
        self._cache = cache
        self._timeout_s = timeout_s
        self._lineage = Lineage()
        self._beside: dict[str, Path] = {}

    def lies_beside(self, folder: Path, checkpoint: Checkpoint) -> None:
        """A folder outside the cache holds a version's files, and was compared with it."""
        self._beside.update((file.sha256, folder / file.path) for file in checkpoint.policy_files)

    async def fetch(self, checkpoint: Checkpoint) -> Path:
        """The version's folder on this machine.

        Raises:
            PolicyError: this machine's disk is full.
            WeightsUnavailable: a piece is not on the bus, and does not come.
            CheckpointCorrupt: the pieces are not the announced files.
            BusUnavailable: no server answers; what was fetched is kept for the next try.
        """
        if found := await self._cached(checkpoint):
            return found
        async with self._cache.held():
            # Another worker of this machine may have fetched it meanwhile.
            if found := await self._cached(checkpoint):
                return found
            progress = _Progress(checkpoint)
            for file in {file.sha256: file for file in checkpoint.policy_files}.values():
                if not await anyio.to_thread.run_sync(self._cache.has, file):
                    await self._obtain(file, checkpoint, progress)
            folder = await anyio.to_thread.run_sync(self._cache.assemble, checkpoint)
            await anyio.to_thread.run_sync(partial(self._cache.prune, base=checkpoint.base))
            progress.ended()
            return folder

    async def _cached(self, checkpoint: Checkpoint) -> Path | None:
        folder = self._cache.folder(checkpoint)
        if not folder.is_dir():
            return None
        try:
            return await anyio.to_thread.run_sync(verify_folder, folder, checkpoint)
        except CheckpointCorrupt as error:
            _log.warning("cached_weights_refused", version=checkpoint.version, reason=str(error))
            return None

    async def _obtain(self, file: FileHash, checkpoint: Checkpoint, progress: "_Progress") -> None:
        route = await self._route(file)
        if not route.is_here:
            await self._fetch_file(route.begin, checkpoint, progress)
            if route.begin == file:
                return
        differences = [difference.file for difference in route.differences]
        for difference in differences:
            if not await anyio.to_thread.run_sync(self._cache.has, difference):
                await self._fetch_file(difference, checkpoint, progress)
        base = self._place(route.begin)
        if base is None:
            raise CheckpointCorrupt(f"{route.begin.path}, which {file.path} is made of, is not here any more")
        try:
            await anyio.to_thread.run_sync(partial(self._cache.make, file, base=base, differences=differences))
        except CheckpointCorrupt:
            await anyio.to_thread.run_sync(self._doubt, [route.begin, *differences])
            raise

    async def _route(self, file: FileHash) -> Route:
        """Where nothing that leads to it is whole on the bus, the file itself, which is waited for."""
        known = (await catch_up(self._lineage, self._bus, self._subjects)).known
        catalogue = Catalogue.of(known[version] for version in sorted(known))
        found = await shortest_route(
            file,
            catalogue,
            is_here=lambda wanted: self._place(wanted) is not None,
            is_stored=is_stored_on(self._bus, self._subjects),
        )
        return found or Route(file.num_bytes, file, False, ())

    def _place(self, file: FileHash) -> Path | None:
        beside = self._beside.get(file.sha256)
        return self._cache.place(file) or (beside if beside is not None and beside.is_file() else None)

    def _doubt(self, files: list[FileHash]) -> None:
        """What is damaged is fetched the next time."""
        for file in files:
            self._beside.pop(file.sha256, None)
            self._cache.has(file)

    async def _fetch_file(self, file: FileHash, checkpoint: Checkpoint, progress: "_Progress") -> None:
        arriving = await anyio.to_thread.run_sync(self._cache.partial, file)
        progress.found(sum(end - begin for begin, end in arriving.held))
        patience = Budget(self._timeout_s)
        while gaps := missing(file.num_bytes, arriving.held):
            began, num_held = anyio.current_time(), len(arriving.held)
            await self._fill(file, arriving, gaps, progress)
            if len(arriving.held) > num_held:
                patience = Budget(self._timeout_s)
                continue
            await self._check_wanted(file, checkpoint, patience)
            await anyio.sleep(_LOOK_AGAIN_S)
            patience.spend(anyio.current_time() - began, meant_s=_LOOK_S)
        await anyio.to_thread.run_sync(arriving.finish)

    async def _fill(self, file: FileHash, arriving: PartialFile, gaps: list[Stretch], progress: "_Progress") -> None:
        """Fetches every stored piece that closes a gap, or a part of one."""
        there = await stored(self._bus, self._subjects, file.sha256)
        wanted = sorted(piece for piece in there if any(piece.begin < gap.end and gap.begin < piece.end for gap in gaps))

        async def fetch_one(piece: Stretch) -> None:
            try:
                chunk = await get(self._bus, self._subjects, file, piece)
                if chunk is not None and piece.end <= file.num_bytes:
                    # Requests are served by the same event loop: hashing and writing must not hold it up.
                    await anyio.to_thread.run_sync(_keep, arriving, chunk, piece)
                    progress.fetched(len(chunk.data))
            except MessageCorrupt as error:
                _log.warning("weights_piece_refused", file=file.path, begin=piece.begin, reason=str(error))

        await side_by_side(wanted, fetch_one, num_loops=_NUM_LOOPS)

    async def _check_wanted(self, file: FileHash, checkpoint: Checkpoint, patience: Budget) -> None:
        """Raises `WeightsUnavailable` when waiting longer for a piece is of no use."""
        newest = (await catch_up(self._lineage, self._bus, self._subjects)).newest
        if newest is not None and newest.version > checkpoint.version:
            raise WeightsUnavailable(f"version {checkpoint.version} left the bus: {newest.version} is newer")
        if patience.is_spent:
            raise WeightsUnavailable(
                f"{file.path} of version {checkpoint.version} is not whole on the bus, and nothing came for "
                f"{self._timeout_s:.0f} s: let the trainer store it there (bus_config.weights=bus), or mount its folder "
                f"{checkpoint.uri} here"
            )


def _keep(arriving: PartialFile, chunk: WeightChunk, piece: Stretch) -> None:
    arriving.write(piece.begin, verified(chunk, piece), chunk.sha256)


class _Progress:
    """Says now and then how far a version is."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._version = checkpoint.version
        self._of_mb = sum(file.num_bytes for file in checkpoint.policy_files) // 10**6
        self._num_fetched = self._num_found = 0
        self._begun_at = self._said_at = anyio.current_time()

    def found(self, num_bytes: int) -> None:
        """Left by an earlier process."""
        self._num_found += num_bytes

    def fetched(self, num_bytes: int) -> None:
        self._num_fetched += num_bytes
        if anyio.current_time() - self._said_at >= _PROGRESS_S:
            self._said_at = anyio.current_time()
            _log.info("weights_fetching", version=self._version, fetched_mb=self._num_fetched // 10**6, of_mb=self._of_mb)

    def ended(self) -> None:
        _log.info(
            "weights_fetched",
            version=self._version,
            fetched_mb=round(self._num_fetched / 1e6, 1),
            resumed_mb=round(self._num_found / 1e6, 1),
            seconds=round(anyio.current_time() - self._begun_at, 2),
        )
