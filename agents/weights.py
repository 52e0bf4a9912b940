"""Loads the newest announced checkpoint that can be had here and is what was announced, again and again until it is served."""

import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import structlog

from agents.following import Following, State
from agents.pinned_weights import pinned
from agents.weight_sources import WeightSources
from bus.companions import companions
from bus.ports import Bus, Record
from bus.subjects import Subjects
from schemas.errors import BusError, CheckpointCorrupt, EngineFailed, PolicyError
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint

_RETRY_S = 1.0
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
        self._following = Following(version, compared=version != 0 or sources.base is None)
        self._told: State | None = None
        self._news = anyio.Event()

    async def catch_up(self) -> None:
        """Tries the newest checkpoint announced so far, then older ones, if they are newer than what is served."""
        record = await self._bus.last(self._subjects.checkpoints, self._filter)
        if record is not None:
            self._hear(record)
        wanted = self._following.wanted
        if wanted is not None and not await self._try(wanted):
            announced = [_checkpoint(record) for record in await self._bus.history(self._subjects.checkpoints, self._filter)]
            for older in sorted(announced, key=lambda each: each.version, reverse=True):
                if self._following.is_served(older) or (older.version != wanted.version and await self._try(older)):
                    break
        await self._say()

    async def follow(self) -> None:
        """Loads what is announced from now on, and tries again what could not be loaded; never returns."""
        async with companions(self._listen):
            while True:
                await self._until_due()
                await self._catch_up_patiently()

    async def _listen(self) -> None:
        after_seq = self._following.announced_seq
        async with self._bus.tail(self._subjects.checkpoints, self._filter, after_seq=after_seq) as records:
            async for record in records:
                self._hear(record)

    def _hear(self, record: Record) -> None:
        self._following.announced(record.seq, _checkpoint(record), anyio.current_time())
        self._news.set()

    async def _until_due(self) -> None:
        while (wait_s := self._following.wait_s(anyio.current_time())) > 0:
            self._news = anyio.Event()
            with anyio.move_on_after(wait_s):
                await self._news.wait()

    async def _catch_up_patiently(self) -> None:
        """Outlasts a server that is away: the old weights are served meanwhile."""
        while True:
            try:
                return await self.catch_up()
            except BusError as error:
                _log.warning("checkpoints_unseen", reason=str(error))
                await anyio.sleep(_RETRY_S)

    @property
    def _filter(self) -> str:
        return self._subjects.everything("checkpoint")

    async def _try(self, checkpoint: Checkpoint) -> bool:
        """Whether this is served now."""
        try:
            folder = await self._sources.folder(checkpoint)
            if self._following.compared or folder != self._sources.base:
                async with pinned(folder, checkpoint, self._sources.cache) as held:
                    await self._load(held, checkpoint.version)
        except EngineFailed:
            raise
        except (CheckpointCorrupt, PolicyError) as error:
            chance = random.random()  # noqa: S311 - nothing secret is drawn
            self._following.failed(checkpoint, error, anyio.current_time(), chance)
            return False
        self._following.loaded(checkpoint.version)
        return True

    async def _say(self) -> None:
        following = self._following
        if following.state == self._told:
            return
        if following.wanted is not None and following.unable:
            version, served = following.wanted.version, following.served
            _log.error("checkpoint_refused", version=version, served=served, reason=following.reason)
        await self._tell(following)
        self._told = following.state


def _checkpoint(record: Record) -> Checkpoint:
    assert isinstance(record.message, Checkpoint)
    return record.message
