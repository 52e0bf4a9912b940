"""Counts engine deaths over all policy workers, on ADVISORIES: the steps and versions that may be at fault.

A step that was in an engine when it died is suspected: from then on it has an engine for itself, so that no other dies with
it. When engines have died of it three times it is given up; so is a version of which a worker's engine died as often while it
was loaded.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import structlog

from agents.engine import Engine, Generation, GenerationRequest
from bus.bulkhead import Bulkhead
from bus.context import WorkerContext
from bus.fault import MOST_TRIES
from bus.fault import Fault as Met
from bus.following import follow
from bus.ports import Record
from schemas.errors import BusError, EngineFailed, Hopeless, PolicyError
from schemas.ids import PolicyVersion
from schemas.messages import Fault

_SCOPE = "engine"
_TELL_S = 5.0
_log = structlog.get_logger()


class EngineDeaths:
    """Of one policy worker: its engine is used through this."""

    def __init__(self, context: WorkerContext, engine: Engine, *, max_running: int) -> None:
        """`max_running`: requests that are with the engine at once, at most."""
        self._bus = context.bus
        self._stream = context.subjects.advisories
        self._told = context.subjects.everything("fault", context.status.role.value)
        self._worker = context.worker
        self._bulkhead = Bulkhead(context, scope=_SCOPE)
        self._engine = engine
        self._num_deaths: dict[str, int] = {}
        """By item, as far as there were any."""
        self._room = anyio.Semaphore(max_running)
        self._max_running = max_running
        self._one_alone = anyio.Lock()
        self._loading = False

    async def begin(self) -> None:
        """Learns what engines have died of so far. Raises `BusUnavailable`."""
        for record in await self._bus.history(self._stream, self._told):
            self._learn(record)

    async def follow(self) -> None:
        """Learns what they die of from now on; never returns."""
        await follow(self._bus, self._stream, self._told, self._learn)

    def _learn(self, record: Record) -> None:
        scope, _, item = record.subject.split(".")[-2].partition("/")
        if scope == _SCOPE and isinstance(fault := record.message, Fault):
            self._num_deaths[item] = max(fault.number, self._num_deaths.get(item, 0))

    async def generate(self, request: GenerationRequest) -> Generation:
        """As of the engine.

        Raises:
            Hopeless: engines have died of this step before, as often as is tried.
        """
        observation = request.observation
        item = f"{observation.episode}/{observation.attempt}/{observation.step}"
        num_deaths = self._num_deaths.get(item, 0)
        if num_deaths >= MOST_TRIES:
            raise Hopeless(f"the engine died at {num_deaths} tries to answer this step")
        async with self._alone() if num_deaths else self._room:
            try:
                return await self._engine.generate(request)
            except EngineFailed as error:
                if not self._loading:
                    await self._tell(error, item)
                raise

    async def load(self, folder: Path, version: PolicyVersion) -> None:
        """As of the engine.

        Raises:
            PolicyError: this worker's engine has died of this version before, as often as is tried.
        """
        item = f"{self._worker}/{version}"
        if (num_deaths := self._num_deaths.get(item, 0)) >= MOST_TRIES:
            raise PolicyError(f"the engine died at {num_deaths} tries to load version {version}")
        self._loading = True
        try:
            await self._engine.load(folder, version)
        except EngineFailed as error:
            await self._tell(error, item)
            raise
        finally:
            self._loading = False

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        async with self._one_alone, AsyncExitStack() as room:
            for _ in range(self._max_running):
                await room.enter_async_context(self._room)
            yield

    async def _tell(self, error: EngineFailed, item: str) -> None:
        """Before the worker ends, and its steps go to others."""
        with anyio.move_on_after(_TELL_S, shield=True):
            try:
                await self._bulkhead.tell(Met.of(error), item)
            except BusError as failure:
                _log.warning("engine_death_untold", item=item, reason=str(failure))
