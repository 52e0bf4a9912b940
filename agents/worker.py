"""The policy worker: observations in, step requests out.

Invariant: an answer is appended behind exactly the observation that it answers, or not at all. A wake-up that comes twice,
late, or for an episode that has moved on costs one read.
"""

import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import structlog
from anyio.abc import TaskGroup

from agents.action_space import ActionSpace
from agents.context import Round, Windows
from agents.duty import Duty
from agents.earlier_answers import ends_thinking
from agents.engine import Engine, Generation, GenerationRequest, Measured
from agents.engine_deaths import EngineDeaths
from agents.following import Following
from agents.held_steps import HeldSteps
from agents.histories import Histories
from agents.parsing import Parsed, parse_response
from agents.prompts import system_prompt
from agents.serving import Serving
from agents.slot_scheduler import SlotScheduler, Source
from agents.tally import Tally
from agents.weight_sources import WeightSources
from agents.weights import AnnouncedWeights
from bus import chain
from bus.background import background
from bus.bulkhead import Bulkhead
from bus.context import WorkerContext
from bus.handoff import Handoff
from bus.ports import Delivery, WorkQueue
from bus.presence import HEARTBEAT_S
from bus.settlement import attempt, settle
from bus.topology import step_queue
from schemas.config import Config
from schemas.errors import BusError, ChainConflict, MessageCorrupt
from schemas.ids import PolicyVersion
from schemas.messages import AnyMessage, Observation, Split, StepHeld, StepRequest, StepWake, Task
from schemas.text import valid

_BACKLOG_PER_SLOT = 2
"""Steps offered by sticky browsers that wait here, per slot; above it any other worker is quicker."""
_OWN_TRIES = 3
_LONG_TEXT = 50_000
"""Characters of an answer that is not read on the event loop: a few milliseconds."""
_TELL_S = 0.5
"""While there is no connection."""
_log = structlog.get_logger()
T = TypeVar("T")


class PolicyWorker:
    """Serves `policy_config.max_num_seqs` steps at once with an engine that is open already."""

    def __init__(
        self,
        context: WorkerContext,
        config: Config,
        *,
        engine: Engine,
        sources: WeightSources,
    ) -> None:
        bus, subjects, policy_config = context.bus, context.subjects, config.policy_config
        self._bus = bus
        self._subjects = subjects
        self._worker = context.worker
        self._status = context.status
        self._drain = context.status.drain
        self._bulkhead = Bulkhead(context)
        self._context = config.context_config
        self._space = ActionSpace.of(config.context_config)
        self._model = config.model_config
        # One that cannot be made is told now, not at the first step.
        system_prompt(self._model.prompt_version, self._space, self._model.prompt_text)
        self._engine = engine
        self._deaths = EngineDeaths(context, engine, max_running=policy_config.max_num_seqs + len(Source) - 1)
        self._sources = sources
        self._own = Handoff[StepWake]()
        """Steps that browsers offered because their episodes are cached here. They exist nowhere else: a browser that gets no
        answer asks again."""
        self._held = HeldSteps()
        """One that is offered again is in good hands."""
        self._queues: dict[Source, WorkQueue] = {
            Source.TRAIN: step_queue(subjects, config.bus_config, Split.TRAIN),
            Source.EVAL: step_queue(subjects, config.bus_config, Split.EVAL),
        }
        # Sources that wait for a message each keep a slot; the engine is full with max_num_seqs all the same.
        self._slots = SlotScheduler(policy_config.max_num_seqs + len(Source) - 1)
        self._policy = policy_config
        self._max_running = policy_config.max_num_seqs
        self._max_backlog = _BACKLOG_PER_SLOT * policy_config.max_num_seqs
        self._histories = Histories(
            bus,
            subjects,
            context=config.context_config,
            max_bytes=policy_config.history_mb * 2**20,
        )
        self._tally = Tally()
        self._duty = Duty()
        """Off while others serve newer versions, and this worker cannot load them."""
        self._serving = Serving(bus, subjects, context.worker, self._duty)

    async def run(self) -> None:
        """Serves until it is cancelled, or drained: then the steps that it has accepted are answered first.

        Begins with the newest announced weights.

        Raises:
            EngineFailed: inside an exception group; the worker must be started anew.
        """
        await self._serving.begin()
        await self._deaths.begin()
        beside = [self._report, self._serving.follow, self._deaths.follow]
        if self._engine.takes_weights:
            weights = AnnouncedWeights(self._bus, self._subjects, self._load, self._engine.version, self._sources, self._tell)
            await weights.catch_up()
            beside.append(weights.follow)
        else:
            await self._tell(Following(self._engine.version))
        self._status.state = "waiting"
        async with (
            self._bus.offers(self._subjects.wake(self._worker), self._accept),
            background(*beside),
            anyio.create_task_group() as group,
        ):
            group.start_soon(self._serve_own)
            for source, queue in self._queues.items():
                group.start_soon(self._serve, source, queue)

    def _accept(self, message: AnyMessage) -> bool:
        """Takes a step of an episode that is cached here, unless this worker is clearly overloaded, leaves or is behind. Asked
        whether it has a step, it says so."""
        if isinstance(message, StepHeld):
            return message in self._held
        if not isinstance(message, StepWake):
            return False
        if message in self._held:
            return True
        if self._drain.requested or not self._duty.is_on or self._own.num_items >= self._max_backlog:
            return False
        self._held.add(message)
        self._own.put(message)
        return True

    async def _serve_own(self) -> None:
        async with anyio.create_task_group() as group:
            serve_one = partial(self._seat_one, Source.OWN, self._own, self._handle_own, group)
            while not self._drain.requested:
                await self._drain.unless(serve_one)
            while self._own.num_items:
                await serve_one()

    async def _serve(self, source: Source, queue: WorkQueue) -> None:
        while not self._drain.requested:
            await self._drain.unless(self._duty.wait_on)
            await self._serve_on_duty(source, queue)

    async def _serve_on_duty(self, source: Source, queue: WorkQueue) -> None:
        """Until this worker is drained or left behind. What came then and was not begun is handed back."""
        # Nothing waits here without a slot: it would go to another worker after its short ack wait, and be answered twice.
        async with self._bus.work(queue, prefetch=0) as inbox, anyio.create_task_group() as group:
            seat_one = partial(self._seat_one, source, inbox, self._handle, group)
            while self._duty.is_on and not self._drain.requested:
                await self._drain.unless(partial(self._duty.while_on, seat_one))

    async def _seat_one(
        self, source: Source, items: AsyncIterator[T], handle: Callable[[T], Coroutine[None, None, None]], group: TaskGroup
    ) -> None:
        await self._slots.take(source)
        try:
            item = await anext(items)
        except BaseException:
            self._slots.give_back()
            raise
        group.start_soon(handle, item)

    async def _handle(self, delivery: Delivery) -> None:
        try:
            refused = partial(self._refuse_delivered, delivery)
            with ExitStack() as in_hand:  # until it is settled
                async with settle(self._bus, delivery, self._worker, bulkhead=self._bulkhead, on_reject=refused):
                    if not isinstance(wake := delivery.message, StepWake):
                        raise MessageCorrupt(f"a {type(wake).__name__} stands in the queue of step wake-ups")
                    in_hand.enter_context(self._held.taken(wake))
                    await self._tell_held(wake)
                    await self._answer(wake)
        finally:
            self._slots.give_back()

    async def _handle_own(self, wake: StepWake) -> None:
        try:
            item = f"{wake.episode}/{wake.attempt}/{wake.step}"  # as in the queue's subjects
            refused = partial(self._refuse, wake)
            answer = partial(self._answer, wake)
            await attempt(answer, num_tries=_OWN_TRIES, item=item, bulkhead=self._bulkhead, on_reject=refused)
        finally:
            self._held.discard(wake)
            self._slots.give_back()

    async def _tell_held(self, wake: StepWake) -> None:
        """Tells the slot that waits who has its step: it asks here from then on."""
        held = StepHeld(episode=wake.episode, attempt=wake.attempt, step=wake.step, worker=self._worker)
        # A server whose permissions are older than this message refuses it; the slot then waits for the queue's own lease.
        with suppress(BusError), anyio.move_on_after(_TELL_S):
            await self._bus.tell(self._subjects.held(wake.episode, wake.attempt, wake.step), held)

    async def _refuse_delivered(self, delivery: Delivery, reason: str) -> bool:
        return isinstance(wake := delivery.message, StepWake) and await self._refuse(wake, reason)

    async def _refuse(self, wake: StepWake, reason: str) -> bool:
        """Ends the episode of a step that is not worth trying again, with the reason: the slot that waits is told."""
        if await chain.refuse(self._bus, self._subjects, wake, reason, self._worker) is not None:
            self._tally.num_refused += 1
            _log.error("step_refused", worker=self._worker, episode=wake.episode, step=wake.step, reason=reason)
        return True

    def _temperature_of(self, task: Task) -> float:
        return 0.0 if task.greedy else self._policy.temperature_of(evaluation=task.split is Split.EVAL)

    async def _answer(self, wake: StepWake) -> None:
        taken_at = time.monotonic()
        waiting = await chain.open_observation(self._bus, self._subjects, wake)
        if waiting is None:
            return
        observation = waiting.observation
        history = await self._histories.before(observation)
        windows = Windows(history.task, history.rounds, observation, self._context, self._model)
        request = GenerationRequest(
            messages=windows.without(0).messages,
            observation=observation,
            temperature=self._temperature_of(history.task),
            shortened=windows.shortened,
        )
        begun_at = time.monotonic()
        self._tally.num_running += 1
        try:
            generation = await self._deaths.generate(request)
        finally:
            self._tally.num_running -= 1
        screenshots = windows.without(generation.num_dropped).screenshots
        generated_s = time.monotonic() - begun_at
        response = valid(generation.text)
        parsed = await self._parsed(response)
        step = self._step_request(observation, screenshots, generation, response, parsed, begun_at - taken_at, generated_s)
        try:
            await chain.answer(self._bus, self._subjects, waiting.seq, step)
        except ChainConflict:
            return  # somebody answered first, or the episode has gone on: this wake-up is used up
        self._histories.add(history, Round(observation, step))
        self._tally.answered(step)

    async def _parsed(self, text: str) -> Parsed:
        """A long text is read in a thread: whoever asks whether this worker is there does not wait for it."""
        parse = partial(parse_response, text, self._space, max_calls=self._context.max_calls)
        return parse() if len(text) < _LONG_TEXT else await anyio.to_thread.run_sync(parse)

    def _step_request(
        self,
        observation: Observation,
        screenshots: tuple[int, ...],
        generation: Generation,
        response: str,
        parsed: Parsed,
        queued_s: float,
        generated_s: float,
    ) -> StepRequest:
        return StepRequest(
            episode=observation.episode,
            attempt=observation.attempt,
            step=observation.step,
            action=parsed.action,
            parsed=parsed.parsed,
            # An endpoint that hides its tokens may hide the thinking too.
            thinking_ended=not generation.completion_tokens or ends_thinking(response, self._model),
            response=response,
            thought=parsed.thought,
            further=parsed.further,
            num_left_out=parsed.num_left_out,
            prompt_tokens=generation.prompt_tokens,
            completion_tokens=generation.completion_tokens,
            logprobs=generation.logprobs,
            versions=generation.versions,
            screenshots=screenshots,
            num_dropped=generation.num_dropped,
            worker=self._worker,
            temperature=generation.temperature,
            finish_reason=generation.finish_reason,
            queued_s=queued_s,
            generated_s=generated_s,
            usage=generation.usage,
        )

    # weights and heartbeat ----------------------------------------------------------------------------------------------

    async def _load(self, folder: Path, version: PolicyVersion) -> None:
        begun_at = time.monotonic()
        async with self._state("loading"):
            await self._deaths.load(folder, version)
        self._tally.load_s = time.monotonic() - begun_at
        _log.info("weights_loaded", worker=self._worker, version=version, seconds=round(self._tally.load_s, 3))

    async def _tell(self, following: Following) -> None:
        await self._serving.say(following)
        self._status.note = (
            f"serves version {following.served} and cannot load {following.wanted.version}: {following.reason}"
            if following.wanted is not None and following.unable
            else ""
        )

    @asynccontextmanager
    async def _state(self, state: str) -> AsyncIterator[None]:
        self._status.state, before = state, self._status.state
        try:
            yield
        finally:
            self._status.state = before

    async def _report(self) -> None:
        """Keeps the heartbeat's figures fresh."""
        while True:
            metrics = self._tally.metrics()
            if self._status.state != "loading":
                at_work = "working" if metrics["tokens_per_s"] > 0 else "waiting"
                self._status.state = at_work if self._duty.is_on else "behind"
            self._status.metrics = {
                **metrics,
                "slots": float(self._max_running),
                "backlog": float(self._own.num_items),
                "history_mb": self._histories.num_bytes / 2**20,
                **(self._engine.gauges() if isinstance(self._engine, Measured) else {}),
            }
            await anyio.sleep(HEARTBEAT_S)
