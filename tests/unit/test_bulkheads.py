"""What nobody foresaw: its name, when a worker fails by it, and what the roles do with it that read records in order."""

import json
import random
from pathlib import Path

import anyio
import pytest
import structlog

from bus.bulkhead import Bulkhead
from bus.context import WorkerContext
from bus.fault import MOST_IN_A_ROW, Fault, Streak, unforeseen
from bus.memory import MemoryBus
from bus.presence import Status
from bus.settlement import attempt
from ops.simulation.training import SimulatedBuilder
from schemas.errors import BusUnavailable, ChainConflict, ConfigurationError, WorkerFailing
from schemas.feeder_config import FeederConfig
from schemas.ids import TaskId
from schemas.messages import Role, StepRequest
from schemas.objective_config import ObjectiveConfig
from tests.builders import WORKER
from tests.deadlines import HANGS_S
from tests.support.training.learning_world import Recorder, play_random, train
from tests.support.training.trainer_world import SUBJECTS, judge, member_task
from tests.unit.test_feeder import feeder, specs
from tests.unit.test_training_schedule import SPECS, schedule
from trainer.feeding.attempts import HIGHEST_LEVEL
from trainer.feeding.feeder_state import FeederState
from trainer.feeding.samplers import History
from trainer.feeding.samplers.uniform import UniformSampler
from trainer.feeding.task_files import TaskSpec
from trainer.samples import Sample

pytestmark = pytest.mark.anyio
GRPO = ObjectiveConfig(adv_estimator="grpo", loss_type="clipped", group_size=2)


def raised(error: Exception) -> Exception:
    """As it is when it has been raised."""
    try:
        raise error
    except Exception as caught:  # noqa: BLE001 - whatever the test asks for
        return caught


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even that")


class TestFault:
    def test_it_is_named_by_kind_place_and_words(self) -> None:
        assert str(Fault.of(raised(KeyError("price")))).startswith("KeyError: 'price' (unit/test_bulkheads.py:")

    @pytest.mark.parametrize("error", [Unspeakable(), ValueError("half an emoji \ud83d"), ValueError("x" * 10_000)])
    def test_any_error_has_a_name_that_every_message_holds(self, error: Exception) -> None:
        named = Fault.of(error).error
        assert named.startswith(("ValueError", "tests.unit.test_bulkheads.Unspeakable"))
        assert len(named.encode()) < 1_000

    def test_what_it_says_tells_no_two_faults_apart(self) -> None:
        one, other = (Fault.of(raised(KeyError(name))) for name in ("a", "b"))
        assert one == other
        assert one != Fault.of(raised(ValueError("a")))

    def test_the_surprise_among_what_was_foreseen(self) -> None:
        surprise = ValueError("odd")
        group = ExceptionGroup("tasks", [ChainConflict("theirs"), ExceptionGroup("inner", [surprise])])
        assert unforeseen(group) is surprise
        assert unforeseen(ExceptionGroup("tasks", [ChainConflict("theirs")])) is None


class TestStreak:
    FAULT, OTHER = Fault("KeyError", "a.py:1", "KeyError: 1"), Fault("KeyError", "b.py:1", "KeyError: 1")

    def test_item_after_item(self) -> None:
        streak = Streak(most=3)
        assert [streak.failed(self.FAULT, item) for item in "abc"] == [False, False, True]

    def test_one_item_again_and_again_is_no_streak(self) -> None:
        streak = Streak(most=3)
        assert not any(streak.failed(self.FAULT, "a") for _ in range(9))

    def test_different_faults_are_no_streak(self) -> None:
        streak = Streak(most=3)
        assert not any(streak.failed(fault, item) for item in "ab" for fault in (self.FAULT, self.OTHER))

    def test_a_success_between_ends_it_unless_it_is_one_of_those_that_failed(self) -> None:
        streak = Streak(most=3)
        for item in "ab":
            streak.failed(self.FAULT, item)
        streak.succeeded("a")
        assert streak.failed(self.FAULT, "c")
        streak.succeeded("d")
        assert not streak.failed(self.FAULT, "e")


async def test_an_input_that_nobody_delivers_again_is_given_up_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.settlement.retry_delay_s", lambda _: 0.0)
    bus, status, reasons = MemoryBus(SUBJECTS), Status(Role.POLICY, WORKER), list[str]()

    async def handle() -> None:
        raise IndexError("screenshot 3")

    async def end(reason: str) -> bool:
        reasons.append(reason)
        return True

    await attempt(handle, num_tries=3, item="e/1/0", bulkhead=Bulkhead(WorkerContext(bus, SUBJECTS, status)), on_reject=end)
    assert status.num_unexpected == 3
    [reason] = reasons
    assert reason.startswith("unexpected at 3 tries: IndexError: screenshot 3")


async def test_item_after_item_ends_a_worker_that_nobody_delivers_to() -> None:
    bulkhead = Bulkhead(WorkerContext(MemoryBus(SUBJECTS), SUBJECTS, Status(Role.POLICY, WORKER)))

    async def handle() -> None:
        raise IndexError("screenshot 3")

    for number in range(MOST_IN_A_ROW - 1):
        await attempt(handle, num_tries=1, item=f"e{number}/1/0", bulkhead=bulkhead)
    with pytest.raises(WorkerFailing):
        await attempt(handle, num_tries=1, item="last/1/0", bulkhead=bulkhead)


# samplers and the feeder ----------------------------------------------------------------------------------------------


class OwnSampler:
    adapts = False

    def __init__(self, drawn: tuple[TaskSpec, ...] | Exception) -> None:
        self._drawn = drawn

    def round(self, index: int, history: History) -> tuple[TaskSpec, ...]:
        if isinstance(self._drawn, Exception):
            raise self._drawn
        return self._drawn


@pytest.mark.parametrize(
    ("drawn", "says"),
    [
        (KeyError("difficulty"), r"OwnSampler, .*, could not draw round 0: KeyError: 'difficulty' \(unit/test_bulkheads.py:"),
        ((), r"drew 0 tasks for round 0: write at least one"),
        ((SPECS[0], SPECS[0]), r"each once"),
    ],
)
def test_a_sampler_that_cannot_draw_is_a_persons_mistake_in_a_sentence(
    drawn: tuple[TaskSpec, ...] | Exception, says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        schedule(OwnSampler(drawn)).take(1, blocked=())


async def test_a_sampler_that_raises_ends_the_feeder_and_does_not_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UniformSampler, "round", lambda *_: dict[str, object]()["tasks"])
    with anyio.fail_after(HANGS_S), pytest.raises(ConfigurationError, match="could not draw round 0: KeyError: 'tasks'"):
        await feeder(MemoryBus(SUBJECTS), FeederConfig(num_iterations=1)).run()


async def test_a_record_that_the_feeder_cannot_take_in_is_left_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    bus, applied = MemoryBus(SUBJECTS), FeederState.apply
    poison = await play_random(bus, member_task(0, 0), random.Random(0))
    await judge(bus, poison, 1.0)
    await judge(bus, await play_random(bus, member_task(1, 0), random.Random(1)), 1.0)

    def apply(self: FeederState, message: object, *rest: object) -> None:
        if getattr(message, "episode", "") == poison.episode:
            raise OverflowError("too large")
        applied(self, message, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(FeederState, "apply", apply)
    with anyio.fail_after(HANGS_S), structlog.testing.capture_logs() as logs:
        async with anyio.create_task_group() as group:
            fed = feeder(bus, FeederConfig(num_iterations=1))
            group.start_soon(fed.run)
            while fed._state.sequences.get(SUBJECTS.judged, 0) < 2:
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    levels = fed._state.attempts.history(specs(2))
    assert (levels[TaskId("t0")].level, levels[TaskId("t1")].level) == (specs(1)[0].attempt_level, HIGHEST_LEVEL)
    assert {line["item"] for line in logs if line["event"] == "unexpected_error"} == {f"{SUBJECTS.judged}/1"}


# the trainer ----------------------------------------------------------------------------------------------------------


async def trained(root: Path, recorder: Recorder, status: Status | None = None) -> MemoryBus:
    bus, draw = MemoryBus(SUBJECTS), random.Random(0)
    for member, reward in enumerate((1.0, 0.0, 1.0, 0.0)):
        await judge(bus, await play_random(bus, member_task(member // 2, member), draw), reward)
    await train(bus, root, recorder, GRPO, num_iterations=2, batch=2, status=status)
    return bus


async def test_a_step_whose_sample_cannot_be_built_is_left_out_by_name_and_consumed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, build = Recorder(), SimulatedBuilder.build
    await trained(tmp_path / "whole", whole)
    bad = whole.items[0].sample.ref

    def poisoned(self: SimulatedBuilder, ref: object, step: StepRequest, screenshots: object) -> Sample:
        if ref == bad:
            raise OverflowError("Python integer 1099511627776 out of bounds for int32")
        return build(self, ref, step, screenshots)  # type: ignore[arg-type]

    monkeypatch.setattr(SimulatedBuilder, "build", poisoned)
    status, recorder = Status(Role.TRAINER, WORKER), Recorder()
    bus = await trained(tmp_path / "poisoned", recorder, status)
    left = {item.sample.ref for item in recorder.items}
    assert left == {item.sample.ref for item in whole.items} - {bad}
    figures = [json.loads(line) for line in (tmp_path / "poisoned/metrics.jsonl").read_text().splitlines()]
    assert [found.get("left_out_failed", 0) for found in figures] == [1, 0]
    assert status.num_unexpected == 1
    [told] = await bus.subjects(SUBJECTS.advisories, SUBJECTS.everything("fault"))
    assert told == SUBJECTS.fault(Role.TRAINER, f"{bad.episode}/{bad.attempt}/{bad.step}", 1)


async def test_what_cannot_be_told_is_left_out_all_the_same() -> None:
    class Away:
        async def append(self, *_: object, **__: object) -> int:
            raise BusUnavailable("away")

    status = Status(Role.TRAINER, WORKER)
    await Bulkhead(WorkerContext(Away(), SUBJECTS, status)).left_out(KeyError("x"), "e/1/0")  # type: ignore[arg-type]
    assert status.num_unexpected == 1
