"""The asyncio face of vLLM: requests go to the engine's thread as commands, answers come back in one batch per step.

Invariant: whoever waits for the engine's thread looks at its pulse meanwhile, so nobody waits for one that hangs.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import anyio
import anyio.to_thread
import structlog

from agents.engine import Generation, GenerationRequest
from agents.engine_pulse import Pulse
from agents.fitting import fitted
from agents.tokens import PromptTokenizer
from agents.vllm_arguments import VllmSettings
from agents.vllm_core import VllmCore
from schemas.errors import EngineFailed, MillraceError, PolicyError
from schemas.ids import PolicyVersion

if TYPE_CHECKING:
    from vllm.outputs import RequestOutput

_CLOSING_S = 5.0
_LOOK_S = 5.0
"""Between two looks of whoever waits at whether the engine hangs."""
T = TypeVar("T")
_log = structlog.get_logger()


@dataclass(eq=False)
class _Pending(Generic[T]):
    """A command's answer, set once, on the event loop."""

    done: anyio.Event = field(default_factory=anyio.Event)
    value: T | None = None
    error: MillraceError | None = None

    def settle(self, value: T | None, error: MillraceError | None) -> None:
        if not self.done.is_set():
            self.value, self.error = value, error
            self.done.set()

    @property
    def result(self) -> T:
        """Once it is `done`."""
        if self.error is not None:
            raise self.error
        assert self.value is not None
        return self.value


@dataclass(eq=False)
class _Submit:
    request_id: str
    prepared: Any
    temperature: float
    pending: _Pending[Generation]


@dataclass(frozen=True)
class _Abort:
    request_id: str


@dataclass(frozen=True)
class _Load:
    folder: Path
    version: PolicyVersion
    pending: _Pending[PolicyVersion]


class _Stop:
    pass


_Command = _Submit | _Abort | _Load | _Stop
_Settled = tuple[_Pending[Any], Any, MillraceError | None]


class VllmEngine:
    """vLLM in this process. Opening it takes as long as vLLM needs to start; the event loop runs on meanwhile."""

    takes_weights = True

    def __init__(
        self, settings: VllmSettings, *, while_loading: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        """`while_loading`: opened before vLLM starts and closed when it has, on a thread where it may block."""
        self._core = VllmCore(settings, PromptTokenizer(settings.folder))
        self._max_prompt = self._core.max_prompt
        self._timeout_s = settings.policy.vllm_timeout
        self._version = settings.version
        self._commands: queue.SimpleQueue[_Command] = queue.SimpleQueue()
        self._ready: _Pending[PolicyVersion] = _Pending()
        self._pulse = Pulse(answer_s=self._timeout_s)
        self._failure: EngineFailed | None = None
        self._while_loading = while_loading
        self._preparing = anyio.CapacityLimiter(1)
        self._ids = count()
        self._thread = threading.Thread(target=self._run, name="vllm", daemon=True)
        self._loop: asyncio.AbstractEventLoop

    @property
    def version(self) -> PolicyVersion:
        return self._version

    def gauges(self) -> dict[str, float]:
        return self._core.gauges()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        await self._answered(self._ready)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._commands.put(_Stop())
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._thread.join, _CLOSING_S)

    async def generate(self, request: GenerationRequest) -> Generation:
        self._check()
        request_id = str(next(self._ids))
        pending: _Pending[Generation] = _Pending()
        try:
            with anyio.fail_after(self._timeout_s):
                told, prepared = await anyio.to_thread.run_sync(self._prepared, request, limiter=self._preparing)
                self._ask(_Submit(request_id, prepared, told.temperature, pending))
                return replace(await self._answered(pending), num_dropped=told.num_dropped)
        except TimeoutError as error:
            raise PolicyError(f"vLLM gave no answer within policy_config.vllm_timeout ({self._timeout_s:g} s)") from error
        finally:
            if not pending.done.is_set():
                self._commands.put(_Abort(request_id))

    def _prepared(self, request: GenerationRequest) -> tuple[GenerationRequest, Any]:
        """The request as it fits, and the engine's input for it. Not on the event loop: a long prompt takes its time."""
        told, tokens = fitted(request, self._core.tokenizer, self._max_prompt)
        return told, self._core.prepare(tokens, told.screenshots)

    async def load(self, folder: Path, version: PolicyVersion) -> None:
        pending: _Pending[PolicyVersion] = _Pending()
        self._ask(_Load(folder, version, pending))
        self._version = await self._answered(pending)

    def _ask(self, command: _Command) -> None:
        """Checked behind the put: a thread that dies notes its failure first and empties its commands last."""
        self._commands.put(command)
        self._check()

    async def _answered(self, pending: _Pending[T]) -> T:
        """What the engine's thread answers. Raises `EngineFailed` too where it hangs, and would never answer."""
        while not pending.done.is_set():
            with anyio.move_on_after(_LOOK_S):
                await pending.done.wait()
                break
            self._check()
        return pending.result

    def _check(self) -> None:
        if self._failure is None and (hung := self._pulse.hung):
            _log.error("engine_hangs", reason=hung)
            self._failure = EngineFailed(hung)
        if self._failure is not None:
            raise EngineFailed(str(self._failure)) from self._failure

    # on the engine's thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with self._while_loading():
                self._pulse.boots(self._core.settings.folder)
                self._core.boot()
        except Exception as error:  # noqa: BLE001 - a boundary: whatever stops vLLM becomes one error of ours
            failure = error if isinstance(error, MillraceError) else EngineFailed(f"vLLM did not start: {error!r}")
            failure.__cause__ = None if failure is error else error
            self._deliver([(self._ready, None, failure)])
            return
        self._deliver([(self._ready, self._core.settings.version, None)])
        _Loop(self._core, self._commands, self._deliver, self._pulse).run(self._fail)

    def _fail(self, failure: EngineFailed) -> None:
        self._failure = failure

    def _deliver(self, settled: list[_Settled]) -> None:
        """Hands answers to the event loop, all in one call."""

        def settle() -> None:
            for pending, value, error in settled:
                pending.settle(value, error)

        try:
            self._loop.call_soon_threadsafe(settle)
        except RuntimeError:
            _log.warning("answers_unheard", num_answers=len(settled))


class _Loop:
    """The engine thread's loop: commands first, then a step; asleep when there is neither."""

    def __init__(
        self,
        core: VllmCore,
        commands: "queue.SimpleQueue[_Command]",
        deliver: Callable[[list[_Settled]], None],
        pulse: Pulse,
    ) -> None:
        self._core = core
        self._commands = commands
        self._deliver = deliver
        self._pulse = pulse
        self._running: dict[str, tuple[_Submit, str]] = {}
        """By our id: the command, and the engine's own id."""
        self._loads: list[_Load] = []

    def run(self, on_failure: Callable[[EngineFailed], None]) -> None:
        try:
            self._pulse.beats()
            while self._obey():
                if self._core.busy:
                    self._step()
            self._core.close()
        except Exception as error:  # noqa: BLE001 - a boundary: whatever ends vLLM becomes one error of ours
            failure = EngineFailed(f"vLLM died: {error!r}")
            failure.__cause__ = error
            _log.error("engine_died", error=repr(error))
            on_failure(failure)
            waiting: list[_Settled] = [(submit.pending, None, failure) for submit, _ in self._running.values()]
            waiting += [(load.pending, None, failure) for load in self._loads]
            waiting += [(c.pending, None, failure) for c in self._queued() if isinstance(c, _Submit | _Load)]
            self._deliver(waiting)

    def _queued(self) -> list[_Command]:
        commands = []
        while not self._commands.empty():
            commands.append(self._commands.get())
        return commands

    def _obey(self) -> bool:
        """Carries out what was asked; waits for a command when the engine has nothing to do. False: stop."""
        commands = self._queued()
        if not commands and not self._core.busy:
            self._pulse.rests()
            commands = [self._commands.get()]
            self._pulse.beats()
        for command in commands:
            match command:
                case _Submit():
                    self._submit(command)
                case _Abort():
                    if found := self._running.pop(command.request_id, None):
                        self._core.abort(found[1])
                case _Load():
                    self._load(command)
                case _Stop():
                    return False
        return True

    def _submit(self, command: _Submit) -> None:
        try:
            internal = self._core.submit(command.request_id, command.prepared, temperature=command.temperature)
        except PolicyError as refusal:
            self._deliver([(command.pending, None, refusal)])
            return
        self._running[command.request_id] = (command, internal)

    def _step(self) -> None:
        before = self._core.num_computed
        self._finish(self._core.step())
        if self._core.num_computed != before:
            self._pulse.beats()

    def _load(self, command: _Load) -> None:
        self._loads.append(command)
        self._pulse.loads(command.folder)
        self._finish(self._core.load(command.folder, command.version))
        self._pulse.beats()
        self._loads.remove(command)
        self._deliver([(command.pending, command.version, None)])

    def _finish(self, outputs: "list[RequestOutput]") -> None:
        settled: list[_Settled] = []
        for output in outputs:
            found = self._running.pop(output.request_id, None)
            if found is None:
                continue
            submit = found[0]
            generation = self._core.generation(output, temperature=submit.temperature)
            if generation.finish_reason in ("stop", "length"):
                settled.append((submit.pending, generation, None))
            else:
                settled.append((submit.pending, None, PolicyError(f"vLLM ended the request: {generation.finish_reason}")))
        if settled:
            self._deliver(settled)
