"""Steps and versions that engines die of, over the in-memory bus: a worker's lives, one after the other and side by side."""

from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.lowlevel
import pytest

from agents.engine import Generation, GenerationRequest
from agents.engine_deaths import EngineDeaths
from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.presence import Status
from bus.subjects import Subjects
from schemas.errors import EngineFailed, Hopeless, PolicyError
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import Role
from tests import builders
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio

SUBJECTS = Subjects(builders.RUN)
FOLDER = Path("weights")
MOST = 4


@dataclass
class MortalEngine:
    """Dies of the step of `kills`: all that is in it, or comes later, fails. Holds what it is asked until `gate` is open."""

    kills: str = ""
    takes_weights: bool = True
    version: PolicyVersion = PolicyVersion(0)
    gate: anyio.Event = field(default_factory=anyio.Event)
    is_dead: bool = False
    running: set[str] = field(default_factory=set)
    beside: dict[str, set[str]] = field(default_factory=dict)
    """What else was in it while a step was."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def generate(self, request: GenerationRequest) -> Generation:
        name = name_of(request)
        self.running.add(name)
        for each in self.running:
            self.beside.setdefault(each, set()).update(self.running - {each})
        try:
            await self.gate.wait()
            await anyio.lowlevel.checkpoint()
            self.is_dead |= name == self.kills
            await anyio.lowlevel.checkpoint()
            if self.is_dead:
                raise EngineFailed("CUDA error: device-side assert triggered")
        finally:
            self.running.discard(name)
        return Generation(text="", finish_reason="stop", prompt_tokens=(), completion_tokens=(), logprobs=(), versions=())

    async def load(self, folder: Path, version: PolicyVersion) -> None:
        raise EngineFailed(f"no room for {folder.name}")


def name_of(request: GenerationRequest) -> str:
    return request.observation.episode.split("-")[2]


def request(name: str) -> GenerationRequest:
    observation = builders.observation(builders.task(name), 0)
    return GenerationRequest(messages=(), observation=observation, shortened=lambda _: None)


async def lived(bus: MemoryBus, engine: MortalEngine, names: set[str], worker: str = "p1") -> dict[str, str]:
    """One life of a worker that answers these at once; what became of each."""
    status = Status(Role.POLICY, WorkerId(worker))
    deaths = EngineDeaths(WorkerContext(bus, SUBJECTS, status), engine, max_running=MOST)
    became: dict[str, str] = {}

    async def ask(name: str) -> None:
        try:
            await deaths.generate(request(name))
        except (EngineFailed, Hopeless) as error:
            became[name] = type(error).__name__
        else:
            became[name] = "answered"

    with anyio.fail_after(HANGS_S):
        await deaths.begin()
        async with anyio.create_task_group() as group:
            for name in sorted(names):
                group.start_soon(ask, name)
            await anyio.wait_all_tasks_blocked()
            engine.gate.set()
    return became


@pytest.fixture
async def bus() -> MemoryBus:
    return MemoryBus(SUBJECTS)


async def test_the_step_that_kills_engines_is_given_up_and_no_other_with_it(bus: MemoryBus) -> None:
    first = await lived(bus, MortalEngine("bad"), {"a", "b", "bad"})
    assert first == {"a": "EngineFailed", "b": "EngineFailed", "bad": "EngineFailed"}, "nobody can know yet which it is"
    lives = [await lived(bus, engine := MortalEngine("bad"), {"a", "b", "bad", "c"}, f"p{life}") for life in (2, 3, 4)]
    assert [life["bad"] for life in lives] == ["EngineFailed", "EngineFailed", "Hopeless"]
    assert {life[name] for life in lives for name in ("a", "b", "c")} == {"answered"}
    assert engine.beside == {"a": set(), "b": set(), "c": set()}


async def test_what_another_engine_died_of_is_known_here_at_once(bus: MemoryBus) -> None:
    status = Status(Role.POLICY, WorkerId("p2"))
    engine = MortalEngine()
    deaths = EngineDeaths(WorkerContext(bus, SUBJECTS, status), engine, max_running=MOST)
    async with anyio.create_task_group() as group:
        group.start_soon(deaths.follow)
        await lived(bus, MortalEngine("bad"), {"a", "bad"})
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as asking:
                for name in ("a", "c", "d"):
                    asking.start_soon(deaths.generate, request(name))
                await anyio.wait_all_tasks_blocked()
                engine.gate.set()
        group.cancel_scope.cancel()
    assert engine.beside == {"a": set(), "c": {"d"}, "d": {"c"}}


async def test_a_version_that_kills_this_engine_is_refused_and_the_next_is_tried(bus: MemoryBus) -> None:
    async def load(version: int, worker: str) -> None:
        deaths = EngineDeaths(
            WorkerContext(bus, SUBJECTS, Status(Role.POLICY, WorkerId(worker))), MortalEngine(), max_running=MOST
        )
        await deaths.begin()
        await deaths.load(FOLDER, PolicyVersion(version))

    for _ in range(3):
        with pytest.raises(EngineFailed):
            await load(7, "p1")
    with pytest.raises(PolicyError, match="died at 3 tries to load version 7"):
        await load(7, "p1")
    for version, worker in ((8, "p1"), (7, "p2")):
        with pytest.raises(EngineFailed):
            await load(version, worker)
