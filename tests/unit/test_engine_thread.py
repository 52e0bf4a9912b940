"""The engine's thread with a scripted core: death, refusal, cancellation, weights. No vLLM."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.to_thread
import pytest

from agents import vllm_engine
from agents.engine import ChatMessage, Generation, GenerationRequest
from agents.vllm_arguments import VllmSettings
from agents.vllm_engine import VllmEngine
from schemas.errors import EngineFailed, PolicyError
from schemas.ids import PolicyVersion
from schemas.policy_config import PolicyConfig
from tests import builders
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio

REQUEST = GenerationRequest(messages=(ChatMessage("user", ("hi",)),), observation=builders.observation(builders.task()))


@dataclass
class ScriptedCore:
    """Finishes a request one step after `may_finish`; raises `fault` from where it says."""

    settings: VllmSettings
    tokenizer: Any
    faults: dict[str, Exception] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    may_finish: threading.Event = field(default_factory=threading.Event)
    closed: bool = False
    max_prompt: int = 3
    changed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def _do(self, name: str) -> None:
        if name in self.faults:
            raise self.faults[name]

    def boot(self) -> None:
        self._do("boot")

    def prepare(self, tokens: list[int], screenshots: object) -> object:
        self._do("prepare")
        return tokens

    def submit(self, request_id: str, prepared: object, *, temperature: float) -> str:
        self._do("submit")
        self.running.append(request_id)
        self.changed.release()
        return f"internal-{request_id}"

    def abort(self, internal_id: str) -> None:
        self.aborted.append(internal_id)
        self.running.remove(internal_id.removeprefix("internal-"))
        self.changed.release()

    @property
    def busy(self) -> bool:
        return bool(self.running)

    def step(self) -> list[Any]:
        self._do("step")
        if not self.may_finish.wait(0.001):
            return []
        finished, self.running = self.running, []
        return [SimpleNamespace(request_id=request_id) for request_id in finished]

    def load(self, folder: Path, version: int) -> list[Any]:
        self._do("load")
        return []

    def generation(self, output: Any, *, temperature: float) -> Generation:
        return Generation(text=output.request_id, finish_reason="stop")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> ScriptedCore:
    tokenizer = SimpleNamespace(prompt=lambda messages: [1, 2, 3], length=lambda tokens, screenshots: 3)
    settings = VllmSettings(
        folder=Path(), version=PolicyVersion(0), policy=PolicyConfig(), cutoff_len=100, max_screenshots=1, seed=0
    )
    core = ScriptedCore(settings, tokenizer)
    monkeypatch.setattr(vllm_engine, "PromptTokenizer", lambda folder: tokenizer)
    monkeypatch.setattr(vllm_engine, "VllmCore", lambda settings, tokenizer: core)
    return core


async def until_running(core: ScriptedCore, number: int) -> None:
    """The engine's thread tells when the number of running requests has changed."""
    with anyio.fail_after(HANGS_S):
        while len(core.running) != number:
            await anyio.to_thread.run_sync(core.changed.acquire, abandon_on_cancel=True)


async def test_answers_and_closes(core: ScriptedCore) -> None:
    core.may_finish.set()
    async with VllmEngine(core.settings) as engine:
        assert (await engine.generate(REQUEST)).text == "0"
        await engine.load(Path("v7"), PolicyVersion(7))
        assert engine.version == 7
    assert core.closed


async def test_prompts_are_made_beside_the_event_loop(core: ScriptedCore) -> None:
    core.may_finish.set()
    threads = list[threading.Thread]()

    def prompt(messages: object) -> list[int]:
        threads.append(threading.current_thread())
        return [len(threads)] * 3

    def length(tokens: list[int], screenshots: object) -> int:
        return 5 - tokens[0]

    core.tokenizer.prompt, core.tokenizer.length = prompt, length
    async with VllmEngine(core.settings) as engine:
        answered = await engine.generate(replace(REQUEST, shortened=lambda _: REQUEST.messages))
    assert (len(threads), answered.num_dropped) == (2, 1)
    assert threading.current_thread() not in threads


async def test_a_death_fails_everything_at_once(core: ScriptedCore) -> None:
    failures = []

    async def ask(engine: VllmEngine) -> None:
        try:
            await engine.generate(REQUEST)
        except EngineFailed as error:
            failures.append(str(error))

    async with VllmEngine(core.settings) as engine:
        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(ask, engine)
                await until_running(core, 3)
                core.faults["step"] = RuntimeError("segfault of sorts")
        await ask(engine)
        with pytest.raises(EngineFailed):
            await engine.load(Path("v1"), PolicyVersion(1))
    assert len(failures) == 4
    assert "segfault of sorts" in failures[0]


async def test_weights_that_cannot_be_loaded_are_fatal(core: ScriptedCore) -> None:
    core.faults["load"] = OSError("no such file")
    async with VllmEngine(core.settings) as engine:
        with pytest.raises(EngineFailed, match="no such file"):
            await engine.load(Path("v1"), PolicyVersion(1))


@pytest.mark.parametrize("where", ["prepare", "submit"])
async def test_a_refused_prompt_concerns_one_request_only(core: ScriptedCore, where: str) -> None:
    core.may_finish.set()
    core.faults[where] = PolicyError("too long")
    async with VllmEngine(core.settings) as engine:
        with pytest.raises(PolicyError, match="too long"):
            await engine.generate(REQUEST)
        core.faults.clear()
        await engine.generate(REQUEST)


async def test_a_cancelled_request_is_aborted(core: ScriptedCore) -> None:
    async with VllmEngine(core.settings) as engine:
        async with anyio.create_task_group() as group:
            group.start_soon(engine.generate, REQUEST)
            await until_running(core, 1)
            group.cancel_scope.cancel()
        await until_running(core, 0)
        assert core.aborted == ["internal-0"]


async def test_the_start_waits_for_its_turn_beside_the_event_loop(core: ScriptedCore) -> None:
    turn, opened = threading.Event(), list[bool]()

    @contextmanager
    def while_loading() -> Iterator[None]:
        assert turn.wait(HANGS_S)
        opened.append(True)
        try:
            yield
        finally:
            opened.append(False)

    core.faults["boot"] = OSError("no room")
    with anyio.fail_after(HANGS_S):
        async with anyio.create_task_group() as group:

            async def start() -> None:
                with pytest.raises(EngineFailed, match="no room"):
                    await VllmEngine(core.settings, while_loading=while_loading).__aenter__()

            group.start_soon(start)
            await anyio.wait_all_tasks_blocked()
            assert not opened
            turn.set()
    assert opened == [True, False], "closed whatever becomes of the start"


async def test_a_start_that_fails_says_why(core: ScriptedCore) -> None:
    core.faults["boot"] = OSError("no weights")
    with pytest.raises(EngineFailed, match="no weights"):
        async with VllmEngine(core.settings):
            pytest.fail("must not open")
