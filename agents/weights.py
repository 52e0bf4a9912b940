"""Loads the newest announced checkpoint that can be had here and is what was announced, again and again until it is served."""

import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import structlog

from agents.following import Following, State
from agents.pinned_weights import pinned
from agents.weight_sources import WeightSources
from bus.background import background
from bus.following import patient_tail
from bus.lineage import Lineage, catch_up
from bus.ports import Bus
from bus.retry import SERVER_AWAITED
from bus.subjects import Subjects
from bus.trying import outlast
from schemas.errors import BusError, CheckpointCorrupt, EngineFailed, PolicyError
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint

_log = structlog.get_logger()

Load = Callable[[Path, PolicyVersion], Awaitable[None]]
Tell = Callable[[Following], Awaitable[None]]
"""Hears every change of what is served, and of whether the newest version can be loaded."""


async def _nobody(_: Following) -> None:
    return None


class AnnouncedWeights:
    """Follows CHECKPOINTS. Versions announced while one is loading are skipped up to the newest."""

    def __init__(
        self, bus: Bus, subjects: Subjects, load: Load, version: PolicyVersion, sources: WeightSources, tell: Tell = _nobody
    ) -> None:
        """`version`: what is served already."""
        self._bus = bus
        self._subjects = subjects
        self._load = load
        self._sources = sources
        self._tell = tell
        self._lineage = Lineage()
        self._following = Following(version, compared=version != 0 or sources.base is None)
        self._told: State | None = None
        self._news = anyio.Event()

    async def catch_up(self) -> None:
        """Tries the newest version announced so far, then older ones, if they are newer than what is served."""
        lineage = await catch_up(self._lineage, self._bus, self._subjects)
        if lineage.newest is not None:
            self._hear(lineage.newest)
        wanted = self._following.wanted
        if wanted is not None and not await self._try(wanted):
            for version in sorted(lineage.known, reverse=True):
                older = lineage.known[version]
                if self._following.is_served(older) or (older.version != wanted.version and await self._try(older)):
                    break
        await self._say()

    async def follow(self) -> None:
        """Loads what is announced from now on, and tries again what could not be loaded; never returns."""
        async with background(self._listen):
            while True:
                await self._until_due()
                await self._catch_up_patiently()

    async def _listen(self) -> None:
        everything, after_seq = self._subjects.everything("checkpoint"), self._lineage.seq
        async with patient_tail(self._bus, self._subjects.checkpoints, everything, after_seq=after_seq) as records:
            async for record in records:
                if self._lineage.takes(record) and self._lineage.newest is not None:
                    self._hear(self._lineage.newest)

    def _hear(self, newest: Checkpoint) -> None:
        self._following.announced(self._lineage.seq, newest, anyio.current_time())
        self._news.set()

    async def _until_due(self) -> None:
        while (wait_s := self._following.wait_s(anyio.current_time())) > 0:
            self._news = anyio.Event()
            with anyio.move_on_after(wait_s):
                await self._news.wait()

    async def _catch_up_patiently(self) -> None:
        """Outlasts a server that is away: the old weights are served meanwhile."""

        def unseen(error: BusError) -> None:
            _log.warning("checkpoints_unseen", reason=str(error))

        await outlast(self.catch_up, (BusError,), SERVER_AWAITED, failed=unseen)

    async def _try(self, checkpoint: Checkpoint) -> bool:
        """Whether this is served now. Adapters are loaded only onto what was compared with their base."""
        try:
            if checkpoint.base is not None and not self._following.compared:
                await self._take(self._known(checkpoint.base))
            await self._take(checkpoint)
        except EngineFailed:
            raise
        except (CheckpointCorrupt, PolicyError) as error:
            chance = random.random()  # noqa: S311 - nothing secret is drawn
            self._following.failed(checkpoint, error, anyio.current_time(), chance)
            return False
        return True

    def _known(self, base: PolicyVersion) -> Checkpoint:
        if base not in self._lineage.known:
            raise CheckpointCorrupt(f"version {base}, which adapters are to be loaded onto, is not announced")
        return self._lineage.known[base]

    async def _take(self, checkpoint: Checkpoint) -> None:
        folder = await self._sources.folder(checkpoint)
        if self._following.compared or folder != self._sources.base:
            async with pinned(folder, checkpoint, self._sources.cache) as held:
                await self._load(held, checkpoint.version)
        self._following.loaded(checkpoint.version)

    async def _say(self) -> None:
        following = self._following
        if following.state == self._told:
            return
        if following.wanted is not None and following.unable:
            version, served = following.wanted.version, following.served
            _log.error("checkpoint_refused", version=version, served=served, reason=following.reason)
        await self._tell(following)
        self._told = following.state
