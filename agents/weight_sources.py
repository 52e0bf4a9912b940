"""Finds an announced version's files: in the trainer's folder, in the base model's, or on the bus."""

from pathlib import Path

import anyio.to_thread
import structlog

from agents.weight_cache import WeightCache
from agents.weight_fetching import WeightFetcher
from agents.weight_files import announced_folder, verify_folder
from bus.ports import Bus
from bus.subjects import Subjects
from schemas.bus_config import BusConfig
from schemas.errors import CheckpointCorrupt
from schemas.messages import Checkpoint

_log = structlog.get_logger()


class WeightSources:
    """Finds folders for one policy worker."""

    def __init__(self, bus: Bus, subjects: Subjects, config: BusConfig, *, cache: Path, base: Path | None) -> None:
        """`cache`: where fetched versions go; `base`: a folder of this machine that may be version 0, until it is found not to
        be."""
        self._over_bus = config.weights == "bus"
        self._fetcher = WeightFetcher(
            bus, subjects, WeightCache(cache, config.weights_kept), timeout_s=config.weights_timeout_s
        )
        self.cache = cache
        self.base = base.resolve() if base is not None else None

    async def folder(self, checkpoint: Checkpoint) -> Path:
        """A folder here whose files are the announced ones.

        Raises:
            CheckpointCorrupt: the files are not those announced, or not on this machine when the run has one disk.
            PolicyError: they should come over the bus, and do not, or find no room on the disk.
            BusUnavailable: no server answers.
        """
        announced = announced_folder(checkpoint)
        if checkpoint.version == 0 and self.base is not None:
            if announced == self.base and not self._over_bus:
                return self.base  # one disk, by the run's own word: no need to read the whole model
            try:
                verified = await anyio.to_thread.run_sync(verify_folder, self.base, checkpoint)
                self._fetcher.lies_beside(verified, checkpoint)
                return verified
            except CheckpointCorrupt as error:
                _log.warning("base_is_not_version_0", folder=str(self.base), reason=str(error))
                self.base = None
        try:
            return await _verified(announced, checkpoint)
        except CheckpointCorrupt as error:
            if not self._over_bus:
                raise
            _log.info("weights_fetched_over_bus", version=checkpoint.version, reason=str(error))
        return await self._fetcher.fetch(checkpoint)


async def _verified(folder: Path | None, checkpoint: Checkpoint) -> Path:
    if folder is None:
        raise CheckpointCorrupt(f"{checkpoint.uri} is not a file:// folder")
    return await anyio.to_thread.run_sync(verify_folder, folder, checkpoint)
