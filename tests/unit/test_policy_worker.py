"""The policy worker over the in-memory bus, with an engine that says what it is told to."""

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.lowlevel
import msgspec
import pytest

from agents.engine import Generation, GenerationRequest
from agents.weight_sources import WeightSources
from agents.worker import PolicyWorker
from bus import chain
from bus.chain import EpisodeChain
from bus.context import WorkerContext
from bus.fault import MOST_IN_A_ROW, MOST_TRIES
from bus.memory import MemoryBus
from bus.ports import Bus, Offered, Record
from bus.presence import Status
from bus.subjects import Subjects
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.context_config import ContextConfig
from schemas.errors import EngineFailed, PolicyError, PromptRefused, PromptTooLong, WorkerFailing
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import (
    Action,
    ActionKind,
    Checkpoint,
    DeadLetter,
    Element,
    Fault,
    FileHash,
    Observation,
    Role,
    Split,
    StepHeld,
    StepRefusal,
    StepRequest,
    StepWake,
    Task,
    VersionSpan,
)
from schemas.model_config import ModelConfig
from schemas.policy_config import PolicyConfig
from tests import builders
from tests.deadlines import HANGS_S
from tests.support.bus.local_weights import local_weights

pytestmark = pytest.mark.anyio

SUBJECTS = Subjects(builders.RUN)
TASK_TEXT = builders.task().instruction
CLICK = '<tool_call>{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [1, 2]}}</tool_call>'


@dataclass
class ScriptedEngine:
    """Says `text`; holds every request while `gate` is closed."""

    text: str = CLICK
    version: PolicyVersion = PolicyVersion(0)
    takes_weights: bool = True
    requests: list[GenerationRequest] = field(default_factory=list)
    loaded: list[tuple[str, int]] = field(default_factory=list)
    gate: anyio.Event | None = None
    loading: Callable[[], Awaitable[None]] | None = None
    dead: bool = False
    refuses: PolicyError | None = None
    hates: str = ""
    """An episode at whose steps it meets what nobody foresaw."""
    fatal: str = ""
    """An episode at whose steps it dies."""
    num_dropped: int = 0
    logprob: float = -0.5
    tokens: tuple[int, ...] = (3,)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def generate(self, request: GenerationRequest) -> Generation:
        self.requests.append(request)
        if self.gate is not None:
            await self.gate.wait()
        if request.observation.episode == self.hates:
            raise IndexError("screenshot index out of range")
        if self.dead or request.observation.episode == self.fatal:
            raise EngineFailed("the engine died")
        if self.refuses is not None:
            raise self.refuses
        return Generation(
            text=self.text,
            finish_reason="stop",
            prompt_tokens=(1, 2),
            completion_tokens=self.tokens,
            logprobs=(self.logprob,) * len(self.tokens),
            versions=tuple(VersionSpan(start=0, end=1, version=self.version) for _ in self.tokens),
            num_dropped=self.num_dropped,
        )

    async def load(self, folder: Path, version: PolicyVersion) -> None:
        if self.loading is not None:
            await self.loading()
        self.loaded.append((folder.name, version))
        self.version = version


WINDOW = ContextConfig(num_rounds=2)
MARKS = ContextConfig(num_rounds=2, interaction_mode="set_of_marks", actions="extended", accessibility_tree=True)


def worker_of(
    bus: MemoryBus,
    engine: ScriptedEngine,
    name: str = "p1",
    *,
    slots: int = 4,
    context: ContextConfig = WINDOW,
    model: ModelConfig | None = None,
    status: Status | None = None,
    sources: WeightSources | None = None,
) -> PolicyWorker:
    return PolicyWorker(
        WorkerContext(bus, SUBJECTS, status or Status(Role.POLICY, WorkerId(name))),
        Config(
            bus_config=BusConfig(run=builders.RUN),
            policy_config=PolicyConfig(max_num_seqs=slots),
            context_config=context,
            model_config=model or ModelConfig(),
        ),
        engine=engine,
        sources=sources or local_weights(bus, SUBJECTS),
    )


@asynccontextmanager
async def running(*workers: PolicyWorker) -> AsyncIterator[None]:
    async with anyio.create_task_group() as group:
        for worker in workers:
            group.start_soon(worker.run)
        await anyio.wait_all_tasks_blocked()
        yield
        group.cancel_scope.cancel()


class Browser:
    """The browser's end of one episode."""

    def __init__(self, bus: MemoryBus, task: Task) -> None:
        self.bus = bus
        self.task = task

    async def begin(self) -> None:
        assert await chain.admit(self.bus, SUBJECTS, self.task) is not None
        await self.take_over()

    async def take_over(self) -> None:
        """Begins the next attempt."""
        taken = await EpisodeChain.take(self.bus, SUBJECTS, self.task, WorkerId("b1"))
        assert isinstance(taken, EpisodeChain)
        self.chain = taken

    async def observe(self) -> StepWake:
        step, attempt = self.chain.num_observations, self.chain.attempt
        data = b"screenshot %d of attempt %d" % (step, attempt)
        observation = builders.observation(self.task, step, attempt=attempt, data=data)
        element = Element(id=step + 1, tag="button", text="Save", box=(0, 0, 9, 9))
        text = {"accessibility_tree": f"tree {step}", "page_text": f"text {step}"}
        seq = await self.chain.observe(msgspec.structs.replace(observation, elements=(element,), **text))
        return StepWake(episode=self.task.episode, attempt=attempt, step=step, observation_seq=seq)

    async def wake(self, wake: StepWake, worker: str | None = None) -> None:
        if worker:
            assert await self.bus.offer(SUBJECTS.wake(WorkerId(worker)), wake, timeout_s=1)
            return
        subject = SUBJECTS.step_any(self.task.split, self.task.episode, wake.attempt, wake.step)
        await self.bus.append(SUBJECTS.steps, subject, wake)

    async def step(self, worker: str | None = None) -> StepRequest:
        """Observes, wakes a policy worker, and waits for the answer."""
        async with self.bus.listen(SUBJECTS.live(self.task.episode, self.chain.attempt)) as live:
            await self.wake(await self.observe(), worker)
            with anyio.fail_after(HANGS_S):
                record = await anext(record async for record in live if not isinstance(record.message, StepHeld))
        assert isinstance(record.message, StepRequest)
        self.chain.answered(record.seq)
        return record.message


@pytest.fixture
async def bus() -> MemoryBus:
    return MemoryBus(SUBJECTS)


async def an_episode(bus: MemoryBus, name: str = "t1", split: Split = Split.TRAIN) -> Browser:
    browser = Browser(bus, builders.task(name, split=split))
    await browser.begin()
    return browser


async def queue_is_empty(bus: MemoryBus) -> None:
    """Returns when every wake-up is settled."""
    with anyio.fail_after(HANGS_S):
        while await bus.subjects(SUBJECTS.steps, SUBJECTS.everything("step")):
            await anyio.wait_all_tasks_blocked()


async def test_answers_with_everything_to_train_on(bus: MemoryBus) -> None:
    browser = await an_episode(bus)
    async with running(worker_of(bus, ScriptedEngine(version=PolicyVersion(3), takes_weights=False))):
        step = await browser.step()
    assert step.action.kind is ActionKind.CLICK
    assert (step.worker, step.parsed, step.response) == ("p1", True, CLICK)
    assert (step.prompt_tokens, step.completion_tokens, step.logprobs) == ((1, 2), (3,), (-0.5,))
    assert step.versions == (VersionSpan(start=0, end=1, version=PolicyVersion(3)),)
    assert step.screenshots == (0,)


async def test_an_answer_names_the_screenshots_that_the_engine_had_room_for(bus: MemoryBus) -> None:
    browser, engine = await an_episode(bus), ScriptedEngine()
    async with running(worker_of(bus, engine)):
        assert [(await browser.step()).screenshots for _ in range(4)] == [(0,), (0, 1), (0, 1, 2), (1, 2, 3)]
        engine.num_dropped = 1
        assert (await browser.step()).screenshots == (3, 4)
    whole = engine.requests[-1]
    shorter = whole.shorter()
    assert shorter is not None
    assert [[screenshot.data[:12] for screenshot in each.screenshots] for each in (whole, shorter)] == [
        [b"screenshot 2", b"screenshot 3", b"screenshot 4"],
        [b"screenshot 3", b"screenshot 4"],
    ]


async def test_unreadable_output_is_a_wait(bus: MemoryBus) -> None:
    browser = await an_episode(bus)
    async with running(worker_of(bus, ScriptedEngine(text="hm"))):
        step = await browser.step()
    assert (step.parsed, step.action.kind, step.action.seconds) == (False, ActionKind.WAIT, 2.0)


@pytest.mark.parametrize("said", ["It is there.\n</think>\n\n", "It is there. "])
async def test_whether_thinking_ended_is_told_of_models_that_think_and_tokens_that_are_known(
    bus: MemoryBus, said: str
) -> None:
    thinks = ModelConfig(model_type="qwen3-think")
    kinds = {"think": (thinks, (3,)), "instruct": (ModelConfig(), (3,)), "hidden": (thinks, ())}
    found = {}
    for name, (model, tokens) in kinds.items():
        browser, engine = await an_episode(bus, name), ScriptedEngine(text=said + CLICK, tokens=tokens)
        async with running(worker_of(bus, engine, model=model)):
            step = await browser.step()
        assert step.parsed
        found[name] = step.thinking_ended
    assert found == {"think": "</think>" in said, "instruct": True, "hidden": True}


async def test_output_is_read_in_the_configured_action_space(bus: MemoryBus) -> None:
    browser = await an_episode(bus)
    double_click = CLICK.replace("left_click", "double_click").replace('"coordinate": [1, 2]', '"element_id": 7')
    async with running(worker_of(bus, ScriptedEngine(text=double_click), context=MARKS)):
        step = await browser.step()
    assert (step.parsed, step.action) == (True, Action(kind=ActionKind.DOUBLE_CLICK, element=7))


class Reads:
    """Counts what is read beside the observations themselves."""

    def __init__(self, bus: MemoryBus) -> None:
        self.num_tasks = 0
        self.num_histories = 0
        self._last, self._history = bus.last, bus.history
        bus.last = self._counted_last  # type: ignore[method-assign]
        bus.history = self._counted_history  # type: ignore[method-assign]

    async def _counted_last(self, stream: str, subject_filter: str) -> Record | None:
        self.num_tasks += subject_filter.endswith(".task")
        return await self._last(stream, subject_filter)

    async def _counted_history(self, stream: str, subject_filter: str) -> Sequence[Record]:
        self.num_histories += stream == SUBJECTS.episodes(0)
        return await self._history(stream, subject_filter)


async def test_remembers_its_own_episodes(bus: MemoryBus) -> None:
    browser, engine, reads = await an_episode(bus), ScriptedEngine(), Reads(bus)
    async with running(worker_of(bus, engine)):
        for _ in range(4):
            await browser.step("p1")
    assert (reads.num_tasks, reads.num_histories) == (1, 0), "only the task is read; the rounds are remembered"
    screenshots = [[screenshot.data for screenshot in request.screenshots] for request in engine.requests]
    assert screenshots[-1] == [b"screenshot %d of attempt 1" % step for step in (1, 2, 3)]


async def test_a_history_of_another_attempt_is_not_continued(bus: MemoryBus) -> None:
    """Attempt 2 comes to this worker at a step up to which it remembers attempt 1."""
    browser, engine = await an_episode(bus), ScriptedEngine()
    async with running(worker_of(bus, engine, "p1")):
        await browser.step("p1")
        await browser.take_over()
        async with running(worker_of(bus, ScriptedEngine(), "p2")):
            await browser.step("p2")
        await browser.step("p1")
    assert [[screenshot.data for screenshot in request.screenshots] for request in engine.requests] == [
        [b"screenshot 0 of attempt 1"],
        [b"screenshot 0 of attempt 2", b"screenshot 1 of attempt 2"],
    ]


@pytest.mark.parametrize("unseen", ["obs.0", "act.1"])
async def test_a_history_with_a_gap_is_tried_again(bus: MemoryBus, unseen: str) -> None:
    """A lagging replica shows the observation, but not yet all that is before it."""
    browser, engine = await an_episode(bus), ScriptedEngine()
    async with running(worker_of(bus, ScriptedEngine(), "p1")):
        for _ in range(2):
            await browser.step("p1")
    history, hidden = bus.history, [unseen]

    async def lagging(stream: str, subject_filter: str) -> Sequence[Record]:
        behind = hidden.pop() if hidden else "nothing"
        return [record for record in await history(stream, subject_filter) if not record.subject.endswith(behind)]

    bus.history = lagging  # type: ignore[method-assign]
    async with running(worker_of(bus, engine, "p2")):
        await browser.step()
    assert not hidden
    assert [len(request.screenshots) for request in engine.requests] == [3]


@pytest.mark.parametrize("context", [WINDOW, MARKS])
async def test_takeover_builds_the_same_prompt(bus: MemoryBus, context: ContextConfig) -> None:
    first, second = ScriptedEngine(), ScriptedEngine()
    browser, other = await an_episode(bus, "t1"), await an_episode(bus, "t2")
    async with running(worker_of(bus, first, "p1", context=context)):
        for _ in range(3):
            await browser.step("p1")
        for _ in range(4):
            await other.step("p1")
    async with running(worker_of(bus, second, "p2", context=context)):
        step = await browser.step()
    taken_over, remembered = second.requests[0], first.requests[6]
    assert step.worker == "p2"
    assert taken_over.messages == remembered.messages
    said = [str(part) for message in taken_over.messages[1:] for part in message.content if isinstance(part, str)]
    assert sum("text " in part for part in said) == 3, "what was read is said again with each screenshot"
    assert [("tree 3" in part, '[4] button "Save"' in part) for part in said][-1] == (context is MARKS,) * 2
    assert not any("tree " in part or "button" in part.replace(TASK_TEXT, "") for part in said[:-1])
    assert step.screenshots == (1, 2, 3)


async def test_a_second_wake_up_costs_no_generation(bus: MemoryBus) -> None:
    browser, engine = await an_episode(bus), ScriptedEngine()
    async with running(worker_of(bus, engine)):
        wake = await browser.observe()
        await browser.wake(wake)
        await queue_is_empty(bus)
        await browser.wake(wake)
        await queue_is_empty(bus)
    assert len(engine.requests) == 1


async def test_the_first_answer_wins(bus: MemoryBus) -> None:
    gate = anyio.Event()
    slow, quick = ScriptedEngine(gate=gate), ScriptedEngine(text=f"quick was here {CLICK}")
    browser = await an_episode(bus)
    async with running(worker_of(bus, slow, "slow")):
        wake = await browser.observe()
        await browser.wake(wake, "slow")
        await anyio.wait_all_tasks_blocked()
        async with running(worker_of(bus, quick, "quick")):
            await browser.wake(wake, "quick")
            await anyio.wait_all_tasks_blocked()
        gate.set()
        await queue_is_empty(bus)
        record = await browser.chain.pending_answer()
        assert record is not None
        assert isinstance(record.message, StepRequest)
        assert record.message.worker == "quick"
        browser.chain.answered(record.seq)
        await browser.step("slow")
    assert len(slow.requests) == 2
    assert "quick was here" in str(slow.requests[1].messages), "a refused answer is not remembered"


async def test_an_episode_with_a_new_owner_is_left_alone(bus: MemoryBus) -> None:
    browser, engine = await an_episode(bus), ScriptedEngine()
    wake = await browser.observe()
    await EpisodeChain.take(bus, SUBJECTS, browser.task, WorkerId("b2"))
    async with running(worker_of(bus, engine)):
        await browser.wake(wake)
        await queue_is_empty(bus)
    assert not engine.requests


async def test_corrupt_wake_up_goes_to_the_dead_letters(bus: MemoryBus) -> None:
    browser = await an_episode(bus)
    async with running(worker_of(bus, ScriptedEngine())), bus.tail(SUBJECTS.advisories, SUBJECTS.everything("dead")) as dead:
        bus.store(SUBJECTS.steps, SUBJECTS.step_any(Split.TRAIN, builders.task("bad").episode), b"\xc1")
        with anyio.fail_after(HANGS_S):
            letter = (await anext(dead)).message
        assert (await browser.step()).worker == "p1", "the worker carries on"
    assert isinstance(letter, DeadLetter)
    assert letter.data == b"\xc1"


async def test_both_splits_and_no_more_seats_than_configured(bus: MemoryBus) -> None:
    engine = ScriptedEngine(gate=anyio.Event())
    splits = [Split.TRAIN, Split.EVAL] * 4
    browsers = [await an_episode(bus, f"t{index}", split) for index, split in enumerate(splits)]
    async with running(worker_of(bus, engine, slots=2)):
        for browser in browsers:
            await browser.wake(await browser.observe())
        await anyio.wait_all_tasks_blocked()
        assert len(engine.requests) <= 4
        assert engine.gate is not None
        engine.gate.set()
        await queue_is_empty(bus)
    assert len(engine.requests) == len(browsers)


class MeasuredEngine(ScriptedEngine):
    def gauges(self) -> dict[str, float]:
        return {"kv_cache_share": 0.25}


async def test_heartbeats_say_how_busy_a_worker_is(bus: MemoryBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.worker.HEARTBEAT_S", 0.0)
    engine, status = MeasuredEngine(gate=anyio.Event()), Status(Role.POLICY, WorkerId("p1"))
    browser = await an_episode(bus)
    async with anyio.create_task_group() as group:
        group.start_soon(worker_of(bus, engine, slots=3, status=status).run)
        began = anyio.current_time()
        await browser.wake(await browser.observe())
        with anyio.fail_after(HANGS_S):
            while status.metrics.get("running") != 1:
                await anyio.lowlevel.checkpoint()
            assert (status.metrics["slots"], status.metrics["kv_cache_share"]) == (3, 0.25)
            assert engine.gate is not None
            engine.gate.set()
            while status.metrics["answered"] != 1:
                await anyio.lowlevel.checkpoint()
        assert status.metrics["running"] == 0
        assert 0 < status.metrics["answer_s"] <= anyio.current_time() - began
        group.cancel_scope.cancel()


async def test_stopping_hands_back(bus: MemoryBus) -> None:
    held, helper = ScriptedEngine(gate=anyio.Event()), ScriptedEngine()
    browser = await an_episode(bus)
    async with running(worker_of(bus, held)):
        await browser.wake(await browser.observe())
        await anyio.wait_all_tasks_blocked()
        assert len(held.requests) == 1
    async with running(worker_of(bus, helper, "p2")):
        await queue_is_empty(bus)
    assert len(helper.requests) == 1


async def test_a_step_that_is_offered_twice_is_answered_once(bus: MemoryBus) -> None:
    browser, engine = await an_episode(bus), ScriptedEngine(gate=anyio.Event())
    async with running(worker_of(bus, engine)):
        wake = await browser.observe()
        for _ in range(3):
            await browser.wake(wake, "p1")
            await anyio.wait_all_tasks_blocked()
        assert engine.gate is not None
        engine.gate.set()
        with anyio.fail_after(HANGS_S):
            while await browser.chain.pending_answer() is None:
                await anyio.wait_all_tasks_blocked()
    assert len(engine.requests) == 1


async def test_a_step_that_is_in_hand_here_is_not_begun_again_when_it_comes_from_the_queue(bus: MemoryBus) -> None:
    browser, engine = await an_episode(bus), ScriptedEngine(gate=anyio.Event())
    async with running(worker_of(bus, engine)):
        wake = await browser.observe()
        await browser.wake(wake, "p1")
        await browser.wake(wake)
        await anyio.wait_all_tasks_blocked()
        assert engine.gate is not None
        engine.gate.set()
        await queue_is_empty(bus)
    assert len(engine.requests) == 1


@pytest.mark.parametrize("worker", ["p1", None], ids=["offered", "queued"])
async def test_a_worker_says_whether_it_has_a_step_in_hand(bus: MemoryBus, worker: str | None) -> None:
    browser, engine = await an_episode(bus), ScriptedEngine(gate=anyio.Event())
    async with (
        running(worker_of(bus, engine)),
        bus.listen(SUBJECTS.live(browser.task.episode, browser.chain.attempt)) as told,
    ):
        wake = await browser.observe()
        held = StepHeld(episode=wake.episode, attempt=wake.attempt, step=wake.step, worker=WorkerId("p1"))

        async def asked() -> Offered:
            return await bus.offer(SUBJECTS.wake(WorkerId("p1")), held, timeout_s=1)

        assert await asked() is Offered.DECLINED, "a question is no offer"
        await browser.wake(wake, worker)
        await anyio.wait_all_tasks_blocked()
        assert await asked() is Offered.TAKEN
        assert engine.gate is not None
        engine.gate.set()
        with anyio.fail_after(HANGS_S):
            heard = [(await anext(told)).message for _ in range(1 if worker else 2)]
            while await asked():
                await anyio.wait_all_tasks_blocked()
    assert heard[:-1] == ([] if worker else [held]), "who takes a step from the queue tells who waits for it"
    assert len(engine.requests) == 1


@pytest.mark.parametrize("refusal", [PromptTooLong, PromptRefused])
@pytest.mark.parametrize("worker", ["p1", None], ids=["offered", "queued"])
async def test_a_prompt_that_is_never_taken_is_refused_at_once_and_for_good(
    bus: MemoryBus, worker: str | None, refusal: type[PolicyError]
) -> None:
    browser, status = await an_episode(bus), Status(Role.POLICY, WorkerId("p1"))
    engine = ScriptedEngine(refuses=refusal("the prompt has 9000 tokens, and 8000 fit"))
    async with running(worker_of(bus, engine, status=status)):
        wake = await browser.observe()
        await browser.wake(wake, worker)
        with anyio.fail_after(HANGS_S):
            while (record := await browser.chain.pending_answer()) is None:
                await anyio.wait_all_tasks_blocked()
        await browser.wake(wake, worker)
        await queue_is_empty(bus)
    assert record.message == StepRefusal(
        episode=wake.episode, attempt=1, step=0, reason="the prompt has 9000 tokens, and 8000 fit", worker=WorkerId("p1")
    )
    assert len(engine.requests) == 1, "what was refused is not asked of the engine again"
    assert not await bus.subjects(SUBJECTS.advisories, SUBJECTS.everything("dead")), "the chain says it: no letter is needed"
    browser.chain.refused(record.seq)
    await browser.take_over()
    assert browser.chain.attempt == 2, "whoever takes the episode over stands behind the refusal"


async def test_a_step_is_in_hand_until_its_refusal_was_told(bus: MemoryBus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever offers it again meanwhile hears that this worker has it."""
    browser, engine = await an_episode(bus), ScriptedEngine(refuses=PromptRefused("not that picture"))
    refuse, taken = chain.refuse, list[Offered]()

    async def refuse_late(on: Bus, subjects: Subjects, wake: StepWake, reason: str, worker: WorkerId) -> int | None:
        taken.append(await bus.offer(SUBJECTS.wake(worker), wake, timeout_s=HANGS_S))
        await anyio.wait_all_tasks_blocked()
        return await refuse(on, subjects, wake, reason, worker)

    monkeypatch.setattr(chain, "refuse", refuse_late)
    async with running(worker_of(bus, engine)):
        await browser.wake(await browser.observe())
        await queue_is_empty(bus)
    assert (taken, len(engine.requests)) == ([Offered.TAKEN], 1)


@pytest.mark.parametrize("worker", ["p1", None], ids=["offered", "queued"])
@pytest.mark.parametrize("logprob", [math.nan, math.inf, -math.inf])
async def test_an_answer_that_no_reader_takes_ends_its_episode_at_once(
    bus: MemoryBus, worker: str | None, logprob: float
) -> None:
    browser, engine = await an_episode(bus), ScriptedEngine(logprob=logprob)
    async with running(policy := worker_of(bus, engine)):
        wake = await browser.observe()
        await browser.wake(wake, worker)
        with anyio.fail_after(HANGS_S):
            while (record := await browser.chain.pending_answer()) is None:
                await anyio.wait_all_tasks_blocked()
        await browser.wake(wake, worker)
        await queue_is_empty(bus)
    assert policy._tally.num_refused == 1
    assert isinstance(record.message, StepRefusal)
    assert "logprobs" in record.message.reason
    assert len(engine.requests) == 1


async def test_an_overloaded_worker_declines_offers(bus: MemoryBus) -> None:
    engine, num_slots = ScriptedEngine(gate=anyio.Event()), 2
    browsers = [await an_episode(bus, f"t{index}") for index in range(20)]
    accepted = 0
    async with running(worker_of(bus, engine, slots=num_slots)):
        for browser in browsers:
            accepted += bool(await bus.offer(SUBJECTS.wake(WorkerId("p1")), await browser.observe(), timeout_s=1))
            await anyio.wait_all_tasks_blocked()
        assert len(engine.requests) == num_slots
        assert accepted == num_slots + 2 * num_slots, "those begun, and a backlog of two a slot"
        assert engine.gate is not None
        engine.gate.set()
        with anyio.fail_after(HANGS_S):
            while len(engine.requests) < accepted:
                await anyio.wait_all_tasks_blocked()


def lag_once(bus: MemoryBus) -> list[bool]:
    """The next look at a chain shows nothing, as a replica that lags behind would. Returns what is empty once it has."""
    last, hidden = bus.last, [True]

    async def lagging(stream: str, subject_filter: str) -> object:
        if hidden and stream == SUBJECTS.episodes(0):
            hidden.pop()
            return None
        return await last(stream, subject_filter)

    bus.last = lagging  # type: ignore[assignment, method-assign]
    return hidden


async def test_an_offered_step_that_is_not_seen_yet_is_tried_again(bus: MemoryBus) -> None:
    browser, engine = await an_episode(bus), ScriptedEngine()
    hidden = lag_once(bus)
    async with running(worker_of(bus, engine)):
        assert (await browser.step("p1")).worker == "p1"
    assert not hidden


@pytest.mark.parametrize("offered", [False, True], ids=["from the queue", "offered"])
async def test_what_nobody_foresaw_ends_one_step_and_the_others_are_answered(
    bus: MemoryBus, offered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bus.settlement.retry_delay_s", lambda _: 0.0)
    bad, good = await an_episode(bus, "bad"), await an_episode(bus, "good")
    engine, status = ScriptedEngine(), Status(Role.POLICY, WorkerId("p1"))
    async with running(worker_of(bus, engine, status=status)):
        for browser in (bad, good):
            await browser.step()
        engine.hates = bad.task.episode
        await bad.wake(await bad.observe(), "p1" if offered else None)
        await good.step("p1")
        with anyio.fail_after(HANGS_S):
            while status.num_unexpected < 3:
                await anyio.lowlevel.checkpoint()
        await queue_is_empty(bus)
        await good.step("p1")
    told = await bus.history(SUBJECTS.advisories, SUBJECTS.everything("fault"))
    faults = [record.message for record in told if isinstance(record.message, Fault)]
    assert [(fault.number, fault.item) for fault in faults] == [(n, f"{bad.task.episode}/1/1") for n in (1, 2, 3)]
    assert {fault.error for fault in faults} == {"IndexError: screenshot index out of range"}
    ended = await bad.chain.pending_answer()
    assert ended is not None
    assert isinstance(ended.message, StepRefusal)
    assert "screenshot index out of range" in ended.message.reason
    assert not await bus.subjects(SUBJECTS.advisories, SUBJECTS.everything("dead")), "the browser is told instead"


async def test_a_worker_that_meets_the_same_at_step_after_step_ends_and_hands_back(
    bus: MemoryBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bus.settlement.retry_delay_s", lambda _: 60.0)
    monkeypatch.setattr("agents.worker.parse_response", lambda *_, **__: dict[str, object]()["grammar"])
    for number in range(MOST_IN_A_ROW):
        browser = await an_episode(bus, f"t{number}")
        await browser.wake(await browser.observe())
    with (
        anyio.fail_after(HANGS_S),
        pytest.RaisesGroup(pytest.RaisesExc(WorkerFailing, match="grammar"), flatten_subgroups=True),
    ):
        await worker_of(bus, ScriptedEngine(), slots=MOST_IN_A_ROW).run()
    assert len(await bus.subjects(SUBJECTS.steps, SUBJECTS.everything("step"))) == MOST_IN_A_ROW


async def test_a_dead_engine_ends_the_worker_and_hands_back(bus: MemoryBus) -> None:
    browser, helper = await an_episode(bus), ScriptedEngine()
    await browser.wake(await browser.observe())
    with pytest.RaisesGroup(EngineFailed, flatten_subgroups=True):
        await worker_of(bus, ScriptedEngine(dead=True)).run()
    async with running(worker_of(bus, helper, "p2")):
        await queue_is_empty(bus)
    assert len(helper.requests) == 1


async def test_a_step_of_which_engines_die_again_and_again_ends_its_episode_with_that_reason(bus: MemoryBus) -> None:
    bad, good = await an_episode(bus, "bad"), await an_episode(bus, "good")
    for browser in (bad, good):
        await browser.wake(await browser.observe())
    for life in range(MOST_TRIES):
        with anyio.fail_after(HANGS_S), pytest.RaisesGroup(EngineFailed, flatten_subgroups=True):
            await worker_of(bus, ScriptedEngine(fatal=bad.task.episode), f"p{life}").run()
    async with running(worker_of(bus, ScriptedEngine(fatal=bad.task.episode), "p9")):
        await queue_is_empty(bus)
    refusal, answer = [await browser.chain.pending_answer() for browser in (bad, good)]
    assert refusal is not None
    assert isinstance(refusal.message, StepRefusal)
    assert refusal.message.reason == "the engine died at 3 tries to answer this step"
    assert answer is not None
    assert isinstance(answer.message, StepRequest)


def a_checkpoint(folder: Path, version: int, *, corrupt: bool = False) -> Checkpoint:
    place = folder / f"v{version}"
    place.mkdir()
    (place / "model.safetensors").write_bytes(b"weights %d" % version)
    digest = sha256(b"other" if corrupt else b"weights %d" % version).hexdigest()
    return Checkpoint(
        run=builders.RUN,
        version=PolicyVersion(version),
        uri=place.as_uri(),
        files=(FileHash(path="model.safetensors", sha256=digest, num_bytes=9),),
        parent=None,
        trainer_step=0,
        judged_seq=0,
    )


async def announce(bus: MemoryBus, checkpoint: Checkpoint) -> None:
    await bus.append(SUBJECTS.checkpoints, SUBJECTS.checkpoint(checkpoint.version), checkpoint)


async def test_a_fresh_worker_begins_with_the_newest_sound_weights(bus: MemoryBus, tmp_path: Path) -> None:
    for version in (1, 2):
        await announce(bus, a_checkpoint(tmp_path, version))
    await announce(bus, a_checkpoint(tmp_path, 3, corrupt=True))
    browser, engine = await an_episode(bus), ScriptedEngine()
    async with running(worker_of(bus, engine)):
        step = await browser.step()
    assert engine.loaded == [("v2", 2)]
    assert step.versions[0].version == 2


async def test_versions_announced_while_loading_are_skipped(bus: MemoryBus, tmp_path: Path) -> None:
    engine, loading, go_on = ScriptedEngine(), anyio.Event(), anyio.Event()

    async def slowly() -> None:
        loading.set()
        await go_on.wait()

    engine.loading = slowly
    async with running(worker_of(bus, engine)):
        await anyio.wait_all_tasks_blocked()
        await announce(bus, a_checkpoint(tmp_path, 1))
        with anyio.fail_after(HANGS_S):
            await loading.wait()
        for version in (2, 3, 4):
            await announce(bus, a_checkpoint(tmp_path, version))
        go_on.set()
        with anyio.fail_after(HANGS_S):
            while engine.version != 4:
                await anyio.wait_all_tasks_blocked()
    assert engine.loaded == [("v1", 1), ("v4", 4)]


async def test_an_observation_that_is_not_seen_yet_is_tried_again(bus: MemoryBus) -> None:
    browser, engine = await an_episode(bus), ScriptedEngine()
    wake = await browser.observe()
    hidden = lag_once(bus)
    async with running(worker_of(bus, engine)):
        await browser.wake(wake)
        await queue_is_empty(bus)
    assert not hidden
    assert [request.observation.step for request in engine.requests] == [0]
    assert isinstance(engine.requests[0].observation, Observation)
