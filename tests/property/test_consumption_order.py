"""Whatever is redelivered, restarted or reordered: each judgement is consumed once, and the feeder ends up the same."""

import random
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from bus.memory import MemoryBus
from bus.ports import Expect
from schemas.errors import ChainConflict
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import (
    AnyMessage,
    Checkpoint,
    Heartbeat,
    Judgement,
    Outcome,
    Role,
    ServedVersion,
    ServingState,
    Trajectory,
)
from tests.builders import RUBRIC, RUN, judgement
from tests.support.training.trainer_world import SUBJECTS, judge, train_task
from trainer.episodes.episode_steps import EpisodeSteps
from trainer.episodes.intake import ReadingPlace, open_intake, sized
from trainer.feeding.feeder_state import FeederState
from trainer.scores import is_success


def ended(index: int, *, demonstrate: bool = False) -> Trajectory:
    task = train_task(index, demonstrate=demonstrate)
    return Trajectory(task=task, attempt=1, outcome=Outcome.DONE, num_observations=1, num_steps=1)


async def _steps_of(trajectory: Trajectory) -> EpisodeSteps:
    return EpisodeSteps(usable=list(trajectory.steps))


class OneTrainer:
    """Consumes batches as the trainer does: its position survives only by being announced."""

    def __init__(self, bus: MemoryBus, size: int) -> None:
        self.bus = bus
        self.size = size
        self.position = 0
        self.consumed: list[list[int]] = []

    async def live(self, num_batches: int, *, begins_another: bool) -> None:
        """Announces so many batches, then dies: at once, or when it has worked on one more without announcing it."""
        ahead = 2 * self.size
        async with open_intake(
            self.bus, SUBJECTS, _steps_of, is_success, rubric=RUBRIC, place=ReadingPlace(self.position), ahead=ahead
        ) as intake:
            for number in range(num_batches + begins_another):
                batch = await intake.batch(sized(self.size), lambda count: None)
                for item in batch:
                    await item.ready.wait()
                if number == num_batches:
                    return
                self.position = batch[-1].seq
                self.consumed.append([item.judgement.trajectory.task.index for item in batch])


@settings(max_examples=30)
@given(
    size=st.integers(1, 5),
    lives=st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
)
def test_restarts_consume_every_judgement_once(size: int, lives: list[tuple[int, bool]], seed: int) -> None:
    async def run() -> None:
        bus, shuffled = MemoryBus(SUBJECTS), random.Random(seed)
        total = size * (sum(count for count, _ in lives) + 1)
        order = list(range(total))
        shuffled.shuffle(order)
        for index in order:
            reward = shuffled.choice([1.0, 0.0, None])
            await judge(bus, ended(index), reward)
            if shuffled.random() < 0.3:
                await judge(bus, ended(1000 + index, demonstrate=True))
            if shuffled.random() < 0.3:
                await _judge_again(bus, index, reward)
            if shuffled.random() < 0.3:
                await judge(bus, ended(index), rubric="another")
        trainer = OneTrainer(bus, size)
        for count, begins_another in lives:
            await trainer.live(count, begins_another=begins_another)
        flat = [index for batch in trainer.consumed for index in batch]
        assert flat == order[: len(flat)], "in the stream's order, none twice, none left out, no demonstration"
        assert len(trainer.consumed) == sum(count for count, _ in lives)

    _run(run())


async def _judge_again(bus: MemoryBus, index: int, reward: float | None) -> None:
    """A redelivered trajectory: judges append create-only."""
    again = judgement(ended(index), reward)
    subject = SUBJECTS.judgement(again.split, again.rubric, again.episode)
    before = await bus.last_seq(SUBJECTS.judged)
    with suppress(ChainConflict):
        await bus.append(SUBJECTS.judged, subject, again, expect=Expect(subject, 0))
    assert await bus.last_seq(SUBJECTS.judged) == before, "JUDGED took a second judgement"


def _run(work: Coroutine[Any, Any, None]) -> None:
    async def main() -> None:
        await work

    anyio.run(main)


def _history() -> list[AnyMessage]:
    judged: list[Judgement] = [judgement(ended(index), float(index % 2)) for index in range(8)]
    versions = [
        Checkpoint(run=RUN, version=PolicyVersion(v), uri="", files=(), parent=None, trainer_step=0, judged_seq=0)
        for v in range(3)
    ]
    return [*judged, *(item.trajectory for item in judged), ended(50), *versions]


@given(st.permutations(_history()), st.lists(st.integers(0, 19), max_size=20))
def test_the_feeder_knows_the_same_in_any_order(messages: list[AnyMessage], repeats: list[int]) -> None:
    """Of streams beside each other; versions come in the order of theirs."""
    state = FeederState()
    state.admit([ended(index).episode for index in (*range(8), 50)])
    versions = iter([each for each in _history() if isinstance(each, Checkpoint)])
    ordered = [next(versions) if isinstance(each, Checkpoint) else each for each in messages]
    again = [each for index in repeats if not isinstance(each := messages[index % len(messages)], Checkpoint)]
    for seq, message in enumerate([*ordered, *again], start=1):
        state.apply(message, 0.0, seq)
    assert (state.num_admitted, state.num_accepted, state.num_ended) == (9, 8, 9)
    assert state.version == 2
    assert sorted(scored.reward for scored in state.window) == [0.0] * 4 + [1.0] * 4
    assert all(scored.success == (scored.reward > 0) for scored in state.window)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.floats(0, 100)), max_size=20), st.floats(0, 120))
def test_admission_counts_from_the_oldest_live_policy(beats: list[tuple[int, int, float]], now: float) -> None:
    state = FeederState(version=4)
    newest: dict[int, tuple[int, float]] = {}
    for seq, (worker, version, at) in enumerate(sorted(beats, key=lambda beat: beat[2]), start=1):
        name = WorkerId(f"w{worker}")
        state.apply(ServedVersion(worker=name, state=ServingState.SERVING, version=PolicyVersion(version), at=at), at, seq)
        state.apply(Heartbeat(role=Role.POLICY, worker=name, state="working", at=at), at)
        newest[worker] = (version, at)
    live = [version for version, at in newest.values() if now - at < 15.0]
    assert state.served(now) == min(live, default=None)
    last = [version for version, _ in newest.values()]
    assert state.admitting_version(now) == min([4, *(live or last)]), "where nobody is heard, whoever comes back answers by it"
