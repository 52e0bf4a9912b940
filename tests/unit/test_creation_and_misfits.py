"""Who goes on beside garbage: a name whose record no reader takes is still its owner's, and a chain goes on behind it."""

import random

import pytest
import structlog

from bus import chain, creation
from bus.chain import EpisodeChain
from bus.chain_state import chain_state_of, last
from bus.memory import MemoryBus
from bus.skipping import _LONGEST_REASON, _MOST_KNOWN, Skipped, readable, skip, skipped
from bus.subjects import Subjects
from ops.simulation.training import SimulatedBuilder
from schemas.errors import ChainConflict, MessageCorrupt, TrainerError, UnusableRecord
from schemas.ids import WorkerId
from schemas.messages import Outcome, RecordRef, Task
from tests.builders import RUN, WORKER, observation, step_request, task, trajectory
from tests.support.training.learning_world import play_random
from tests.support.training.trainer_world import SUBJECTS as LEARNING
from tests.support.training.trainer_world import member_task
from trainer.episodes.episode_steps import _MOST_MISFITS, StepRules, StepStore
from trainer.samples import Sample

pytestmark = pytest.mark.anyio
SUBJECTS = Subjects(RUN)
GARBAGE = b"\xc1 garbage"
STREAM = SUBJECTS.trajectories


@pytest.fixture
def bus() -> MemoryBus:
    return MemoryBus(SUBJECTS)


# creation -------------------------------------------------------------------------------------------------------------


async def test_the_only_record_of_a_subject_is_made_once(bus: MemoryBus) -> None:
    ended = trajectory(task())
    subject = SUBJECTS.trajectory(ended.task.split, ended.episode)
    assert await creation.create(bus, STREAM, subject, ended) == 1
    other = trajectory(ended.task, outcome=Outcome.FAILED)
    assert await creation.create(bus, STREAM, subject, other) is None
    assert await bus.last_seq(STREAM) == 1


async def test_garbage_under_its_name_keeps_no_record_out(bus: MemoryBus) -> None:
    ended = trajectory(task())
    subject = SUBJECTS.trajectory(ended.task.split, ended.episode)
    await bus.append_bytes(STREAM, subject, GARBAGE)
    await bus.append_bytes(STREAM, subject, GARBAGE)
    assert await creation.create(bus, STREAM, subject, ended) == 3
    assert (skipped.count, skipped.newest.startswith(f"record 2, {subject}: ")) == (1, True)
    found = await bus.last(STREAM, subject)
    assert found is not None
    assert found.message == ended


async def test_which_record_no_reader_takes(bus: MemoryBus) -> None:
    ended = trajectory(task())
    subject = SUBJECTS.trajectory(ended.task.split, ended.episode)
    assert await creation.unreadable(bus, STREAM, subject) == 0
    await bus.append_bytes(STREAM, subject, GARBAGE)
    assert await creation.unreadable(bus, STREAM, subject) == 1
    await bus.append(STREAM, subject, ended)
    assert await creation.unreadable(bus, STREAM, subject) == 0


# chains ---------------------------------------------------------------------------------------------------------------


async def owned(bus: MemoryBus, of: Task) -> EpisodeChain:
    await chain.admit(bus, SUBJECTS, of)
    taken = await EpisodeChain.take(bus, SUBJECTS, of, WORKER)
    assert isinstance(taken, EpisodeChain)
    return taken


async def garbled(bus: MemoryBus, of: Task, attempt: int, kind: str, step: int) -> MessageCorrupt:
    """What reading the chain raises once such a record stands at its end."""
    await bus.append_bytes(SUBJECTS.episodes(0), SUBJECTS.chain_record(of.episode, attempt, kind, step), GARBAGE)
    with pytest.raises(MessageCorrupt) as met:
        await last(bus, SUBJECTS, of.episode)
    return met.value


async def test_an_owner_goes_on_behind_an_answer_that_no_reader_takes(bus: MemoryBus) -> None:
    of = task()
    owner = await owned(bus, of)
    await owner.observe(observation(of))
    met = await garbled(bus, of, 1, "act", 0)
    with pytest.raises(ChainConflict):
        await owner.finish(trajectory(of))
    owner.pass_over(met)
    assert (owner.last_seq, owner.num_steps) == (met.seq, 0)
    await owner.finish(trajectory(of))


@pytest.mark.parametrize(("attempt", "kind"), [(2, "start"), (2, "act"), (1, "obs")])
async def test_elsewhere_it_says_that_somebody_else_went_on(bus: MemoryBus, attempt: int, kind: str) -> None:
    of = task()
    owner = await owned(bus, of)
    seen = await owner.observe(observation(of))
    with pytest.raises(ChainConflict, match="went on without this worker"):
        owner.pass_over(await garbled(bus, of, attempt, kind, 0 if kind != "obs" else 1))
    assert owner.last_seq == seen


async def test_an_attempt_that_only_garbage_stands_under_is_none_to_begin(bus: MemoryBus) -> None:
    of = task()
    owner = await owned(bus, of)
    owner.answered(await chain.answer(bus, SUBJECTS, await owner.observe(observation(of)), step_request(of)))
    met = await garbled(bus, of, 4, "start", 0)
    state = await chain_state_of(bus, SUBJECTS, of.episode)
    assert (state.seq, state.attempt, state.highest_attempt) == (met.seq, 1, 4)
    assert (state.newest, state.end) == (step_request(of), None)
    again = await EpisodeChain.take(bus, SUBJECTS, of, WorkerId("second"))
    assert isinstance(again, EpisodeChain)
    assert again.attempt == 5


# what was left out ----------------------------------------------------------------------------------------------------


def test_a_record_is_told_of_once(bus: MemoryBus) -> None:
    subject = SUBJECTS.trajectory(task().split, task().episode)
    bus.store(STREAM, subject, GARBAGE)
    (record,) = bus._stream(STREAM).under(subject)
    with structlog.testing.capture_logs() as logs:
        assert [readable(record), readable(record)] == [None, None]
        skip("elsewhere", 7, "odd")
        skip("elsewhere", 7, "odd")
        skip("elsewhere", 7, "odd in another way")
    assert [(line["event"], line["seq"]) for line in logs] == [("record_skipped", seq) for seq in (1, 7, 7)]
    assert (skipped.count, skipped.newest) == (3, "record 7, elsewhere: odd in another way")


def test_what_is_known_of_them_is_bounded() -> None:
    of = Skipped()
    for number in range(_MOST_KNOWN + 1):
        assert of.note(number, "x" * 10_000)
    assert not of.note(_MOST_KNOWN, "again")
    assert (of.count, len(of._known), len(of.newest)) == (_MOST_KNOWN + 1, 1, _LONGEST_REASON)


# misfits --------------------------------------------------------------------------------------------------------------


class Fussy(SimulatedBuilder):
    """No sample fits while `fits` is off."""

    fits = False

    def build(self, ref: RecordRef, *rest: object) -> Sample:
        if not self.fits:
            raise UnusableRecord("another size")
        return super().build(ref, *rest)  # type: ignore[arg-type]


async def stored(bus: MemoryBus, builder: Fussy) -> tuple[StepStore, list[RecordRef]]:
    """A store beside so many steps that the last one is a misfit too many."""
    refs: list[RecordRef] = []
    for number in range(_MOST_MISFITS):
        refs += (await play_random(bus, member_task(number, 0), random.Random(number))).steps
    rules = StepRules(unparsed=True, unchanged=True, unsampled=True)
    return StepStore(bus, LEARNING, builder, cache_bytes=1 << 20, rules=rules), refs[:_MOST_MISFITS]


async def test_misfits_are_left_out_by_name_until_it_is_the_settings_that_differ() -> None:
    bus = MemoryBus(LEARNING)
    store, refs = await stored(bus, Fussy())
    assert await store.samples(refs[:-1]) == []
    assert skipped.count == _MOST_MISFITS - 1
    with pytest.raises(TrainerError, match=f"the first {_MOST_MISFITS} records fit no sample: another size"):
        await store.samples(refs[-1:])


async def test_where_one_has_fitted_misfits_are_their_writers_mistake() -> None:
    bus, builder = MemoryBus(LEARNING), Fussy()
    store, refs = await stored(bus, builder)
    builder.fits = True
    assert len(await store.samples(refs[:1])) == 1
    builder.fits = False
    for _ in range(2):
        assert [sample.ref for sample in await store.samples(refs)] == refs[:1]
    assert skipped.count == _MOST_MISFITS - 1
