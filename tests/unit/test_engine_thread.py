"""The engine's thread with a scripted core: death, hanging, refusal, cancellation, weights. No vLLM."""

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

from agents import engine_pulse, vllm_engine
from agents.engine import ChatMessage, Generation, GenerationRequest
from agents.engine_pulse import reading_s
from agents.vllm_arguments import VllmSettings
from agents.vllm_core import VllmCore
from agents.vllm_engine import VllmEngine
from schemas.errors import EngineFailed, PolicyError
from schemas.ids import PolicyVersion
from schemas.policy_config import PolicyConfig
from tests import builders
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio

REQUEST = GenerationRequest(messages=(ChatMessage("user", ("hi",)),), observation=builders.observation(builders.task()))
_HOURS_S = 1e6


@dataclass
class ScriptedCore:
    """Finishes a request one step after `may_finish`; raises `fault` from where it says, or stays there until `may_go_on`."""

    settings: VllmSettings
    tokenizer: Any
    faults: dict[str, Exception] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    hangs: str = ""
    may_go_on: threading.Event = field(default_factory=threading.Event)
    computes: bool = True
    clock: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(now=0.0))
    """What the engine's pulse goes by in tests of hanging: hours pass where it hangs, and none otherwise."""
    num_computed: int = 0
    may_finish: threading.Event = field(default_factory=threading.Event)
    closed: bool = False
    max_prompt: int = 3
    changed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def _do(self, name: str) -> None:
        if name in self.faults:
            raise self.faults[name]
        if name == self.hangs:
            self.clock.now += _HOURS_S
            self.may_go_on.wait(HANGS_S)

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
        self.num_computed += self.computes
        self.clock.now += 0 if self.computes else _HOURS_S
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
def core(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedCore]:
    tokenizer = SimpleNamespace(prompt=lambda messages: [1, 2, 3], length=lambda tokens, screenshots: 3)
    settings = VllmSettings(
        folder=Path(), version=PolicyVersion(0), policy=PolicyConfig(), cutoff_len=100, max_screenshots=1, seed=0
    )
    core = ScriptedCore(settings, tokenizer)
    monkeypatch.setattr(vllm_engine, "PromptTokenizer", lambda folder: tokenizer)
    monkeypatch.setattr(vllm_engine, "VllmCore", lambda settings, tokenizer: core)
    yield core
    core.may_go_on.set()


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


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, core: ScriptedCore) -> None:
    """Whoever waits looks often, and the time is `core.clock`'s."""
    core.settings = replace(core.settings, policy=replace(core.settings.policy, vllm_timeout=HANGS_S))
    monkeypatch.setattr(vllm_engine, "_LOOK_S", 0.01)
    monkeypatch.setattr(vllm_engine, "_CLOSING_S", 0.01)
    monkeypatch.setattr(engine_pulse, "time", SimpleNamespace(monotonic=lambda: core.clock.now))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("how", ["step", "without_progress"])
async def test_an_engine_that_hangs_over_requests_fails_them_and_all_that_come(core: ScriptedCore, how: str) -> None:
    core.hangs, core.computes = how, how == "step"
    async with VllmEngine(core.settings) as engine:
        for _ in range(2):
            with anyio.fail_after(HANGS_S), pytest.raises(EngineFailed, match="did not compute anything within"):
                await engine.generate(REQUEST)


@pytest.mark.usefixtures("impatient")
async def test_an_engine_that_hangs_over_weights_fails_those_that_wait_with_it(core: ScriptedCore) -> None:
    core.hangs = "load"
    failed = list[str]()

    async def expect_failure(engine: VllmEngine) -> None:
        with pytest.raises(EngineFailed, match="did not load weights within") as failure:
            await engine.generate(REQUEST)
        failed.append(str(failure.value))

    async with VllmEngine(core.settings) as engine:
        with anyio.fail_after(HANGS_S):
            async with anyio.create_task_group() as group:
                group.start_soon(expect_failure, engine)
                await until_running(core, 1)
                with pytest.raises(EngineFailed, match="did not load weights within"):
                    await engine.load(Path("v1"), PolicyVersion(1))
    assert len(failed) == 1


@pytest.mark.usefixtures("impatient")
async def test_an_engine_that_hangs_at_its_start_fails(core: ScriptedCore) -> None:
    core.hangs = "boot"
    with anyio.fail_after(HANGS_S), pytest.raises(EngineFailed, match="did not start within"):
        async with VllmEngine(core.settings):
            pytest.fail("must not open")


def test_a_pulse_that_beats_or_rests_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("agents.engine_pulse.time", SimpleNamespace(monotonic=lambda: clock.now))
    pulse = engine_pulse.Pulse(answer_s=1000.0)

    def hangs_after(seconds: float) -> bool:
        clock.now += seconds
        return bool(pulse.hung)

    pulse.beats()
    assert [hangs_after(1999.0), hangs_after(2.0)] == [False, True]
    pulse.beats()
    assert not hangs_after(1999.0)
    pulse.rests()
    assert not hangs_after(1e9)


def test_the_time_for_weights_grows_with_them(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"0" * 1000)
    (tmp_path / "trainer").mkdir()
    assert reading_s(tmp_path) * engine_pulse._LEAST_BYTES_A_S == pytest.approx(1000)


def test_a_prompt_does_not_wait_for_ever_for_weights_that_are_being_read(core: ScriptedCore) -> None:
    real = VllmCore(replace(core.settings, policy=PolicyConfig(vllm_timeout=0.01)), core.tokenizer)
    real._refusals = ()
    with real._looking_up, pytest.raises(PolicyError, match="still reading new weights"):
        real.prepare([1, 2, 3], ())


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
