"""The chain rule on both buses: one owner, one answer, one end."""

from contextlib import suppress

import anyio
import msgspec
import pytest

from bus import chain, chain_state
from bus.chain import EpisodeChain
from bus.codec import encode
from bus.ports import Bus
from schemas.errors import ChainConflict
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import EpisodeStart, Outcome, RecordRef, Split, StepRefusal, StepRequest, StepWake, Task, Trajectory
from tests.builders import WORKER, observation, step_request, task, trajectory
from tests.contract.backends import SUBJECTS, Backend

pytestmark = pytest.mark.anyio
SECOND = WorkerId("worker-2")


async def admitted(backend: Backend) -> Task:
    admitted_task = task()
    assert await chain.admit(backend.bus, SUBJECTS, admitted_task) is not None
    return admitted_task


async def taken(backend: Backend, of: Task, worker: WorkerId = WORKER) -> EpisodeChain:
    owned = await EpisodeChain.take(backend.bus, SUBJECTS, of, worker)
    assert isinstance(owned, EpisodeChain)
    return owned


async def played(backend: Backend, of: Task) -> tuple[EpisodeChain, Trajectory]:
    owned = await taken(backend, of)
    seen = await owned.observe(observation(of))
    owned.answered(await chain.answer(backend.other, SUBJECTS, seen, step_request(of)))
    return owned, trajectory(of, num_observations=owned.num_observations, num_steps=owned.num_steps)


async def test_an_episode_is_admitted_once(backend: Backend) -> None:
    of = await admitted(backend)
    first = await chain_state.last(backend.bus, SUBJECTS, of.episode)
    assert first is not None
    assert await chain.admit(backend.other, SUBJECTS, of) == first.seq
    assert await chain.admit(backend.other, SUBJECTS, msgspec.structs.replace(of, policy_version=PolicyVersion(9))) is None
    assert len(await backend.bus.history(SUBJECTS.episodes(0), SUBJECTS.chain(of.episode))) == 1


async def test_two_slots_of_one_worker_never_both_own_an_episode(backend: Backend) -> None:
    """They see the same chain, and append what says the same: the record's draw tells whose it is."""
    of = await admitted(backend)
    owners = list[EpisodeChain]()
    async with anyio.create_task_group() as group:
        for bus in (backend.bus, backend.other):
            group.start_soon(_take, bus, of, owners)
    assert len({owned.attempt for owned in owners}) == len(owners)


async def _take(bus: Bus, of: Task, owners: list[EpisodeChain]) -> None:
    with suppress(ChainConflict):
        owned = await EpisodeChain.take(bus, SUBJECTS, of, WORKER)
        assert isinstance(owned, EpisodeChain)
        owners.append(owned)


async def test_a_whole_episode(backend: Backend) -> None:
    of = await admitted(backend)
    owned, ended = await played(backend, of)
    assert (owned.num_observations, owned.num_steps) == (1, 1)
    await owned.finish(ended)
    assert await EpisodeChain.take(backend.other, SUBJECTS, of, SECOND) == ended


@pytest.mark.parametrize("garbage_behind", [False, True])
async def test_an_end_of_another_task_ends_nothing(backend: Backend, garbage_behind: bool) -> None:
    of = await admitted(backend)
    owned = await taken(backend, of)
    await owned.observe(observation(of))
    forged = trajectory(msgspec.structs.replace(of, split=Split.EVAL), num_observations=1)
    await owned.finish(forged)
    if garbage_behind:
        subject = SUBJECTS.chain_record(of.episode, 1, "act", 0)
        await backend.bus.append_bytes(SUBJECTS.episodes(0), subject, b"\xc1 garbage")
    again = await taken(backend, of, SECOND)
    assert again.attempt == 2
    ended = trajectory(of, attempt=2, num_observations=0)
    await again.finish(ended)
    assert await EpisodeChain.take(backend.other, SUBJECTS, of, SECOND) == ended


async def test_an_answer_whose_live_copy_was_missed_is_found(backend: Backend) -> None:
    of = await admitted(backend)
    owned = await taken(backend, of)
    seen = await owned.observe(observation(of))
    assert await owned.pending_answer() is None
    await chain.answer(backend.other, SUBJECTS, seen, step_request(of))
    pending = await owned.pending_answer()
    assert pending is not None
    assert pending.message == step_request(of)


@pytest.mark.parametrize("refused", [False, True])
async def test_an_observation_with_garbage_behind_it_is_answered_all_the_same(backend: Backend, refused: bool) -> None:
    """Two records of it, in the places of an earlier act and of another attempt's."""
    of = await admitted(backend)
    owned = await taken(backend, of)
    owned.answered(await chain.answer(backend.other, SUBJECTS, await owned.observe(observation(of)), step_request(of)))
    seen = await owned.observe(observation(of, 1))
    for attempt in (1, 2):
        subject = SUBJECTS.chain_record(of.episode, attempt, "act", 0)
        await backend.bus.append_bytes(SUBJECTS.episodes(0), subject, b"\xc1 garbage")
    wake = StepWake(episode=of.episode, attempt=1, step=1, observation_seq=seen)
    if refused:
        assert await chain.refuse(backend.other, SUBJECTS, wake, "no", WORKER) is not None
    else:
        waiting = await chain.open_observation(backend.other, SUBJECTS, wake)
        assert waiting is not None
        assert (waiting.observation, waiting.seq) == (observation(of, 1), seen + 2)
        await chain.answer(backend.other, SUBJECTS, waiting.seq, step_request(of, 1))
    assert await chain.open_observation(backend.other, SUBJECTS, wake) is None
    pending = await owned.pending_answer()
    assert pending is not None
    assert isinstance(pending.message, StepRefusal if refused else StepRequest)
    owned.answered(pending.seq)
    await owned.finish(trajectory(of, num_observations=2, num_steps=1 if refused else 2))


@pytest.mark.parametrize("forged", [b"\xc1 garbage", None], ids=["garbage", "another step"])
async def test_an_observation_with_something_else_under_its_own_subject_is_answered_all_the_same(
    backend: Backend, forged: bytes | None
) -> None:
    of = await admitted(backend)
    owned = await taken(backend, of)
    seen = await owned.observe(observation(of))
    subject = SUBJECTS.chain_record(of.episode, 1, "obs", 0)
    await backend.bus.append_bytes(SUBJECTS.episodes(0), subject, forged or encode(observation(of, 3)))
    wake = StepWake(episode=of.episode, attempt=1, step=0, observation_seq=seen)
    waiting = await chain.open_observation(backend.other, SUBJECTS, wake)
    assert waiting is not None
    assert (waiting.observation, waiting.seq) == (observation(of), seen + 1)
    owned.answered(await chain.answer(backend.other, SUBJECTS, waiting.seq, step_request(of)))
    assert await chain.open_observation(backend.other, SUBJECTS, wake) is None
    await owned.finish(trajectory(of, num_observations=1, num_steps=1))


@pytest.mark.parametrize("step", [0, 1, 2, 5])
async def test_an_observation_with_another_out_of_its_place_behind_it_is_answered_all_the_same(
    backend: Backend, step: int
) -> None:
    of = await admitted(backend)
    owned = await taken(backend, of)
    for number in (0, 1):
        seen = await owned.observe(observation(of, number))
        owned.answered(await chain.answer(backend.other, SUBJECTS, seen, step_request(of, number)))
    seen = await owned.observe(observation(of, 2))
    subject = SUBJECTS.chain_record(of.episode, 1, "obs", step)
    await backend.bus.append(SUBJECTS.episodes(0), subject, observation(of, step))
    wake = StepWake(episode=of.episode, attempt=1, step=2, observation_seq=seen)
    waiting = await chain.open_observation(backend.other, SUBJECTS, wake)
    assert waiting is not None
    assert (waiting.observation, waiting.seq) == (observation(of, 2), seen + 1)
    await chain.answer(backend.other, SUBJECTS, waiting.seq, step_request(of, 2))
    assert await chain.open_observation(backend.other, SUBJECTS, wake) is None
    pending = await owned.pending_answer()
    assert pending is not None
    owned.answered(pending.seq)
    await owned.finish(trajectory(of, num_observations=3, num_steps=3))


@pytest.mark.parametrize("ended", [False, True])
async def test_an_observation_of_an_earlier_attempt_behind_all_begins_nothing_twice(backend: Backend, ended: bool) -> None:
    of = await admitted(backend)
    await (await taken(backend, of)).observe(observation(of))
    second = await taken(backend, of, SECOND)
    end = trajectory(of, attempt=2, num_observations=0)
    if ended:
        await second.finish(end)
    await backend.bus.append(SUBJECTS.episodes(0), SUBJECTS.chain_record(of.episode, 1, "obs", 1), observation(of, 1))
    found = await EpisodeChain.take(backend.other, SUBJECTS, of, WORKER)
    if ended:
        assert found == end
    else:
        assert isinstance(found, EpisodeChain)
        assert found.attempt == 3


@pytest.mark.parametrize("how", ["taken over", "ended"])
async def test_who_waits_for_an_answer_learns_that_the_episode_went_on(backend: Backend, how: str) -> None:
    of = await admitted(backend)
    owned = await taken(backend, of)
    await owned.observe(observation(of))
    if how == "ended":
        await chain.cancel(backend.other, SUBJECTS, of, Outcome.CANCELLED, "enough", 5.0)
    else:
        await taken(backend, of, SECOND)
    with pytest.raises(ChainConflict):
        await owned.pending_answer()


async def test_a_refusal_stands_in_the_place_of_an_answer(backend: Backend) -> None:
    of = await admitted(backend)
    owned = await taken(backend, of)
    async with backend.bus.listen(SUBJECTS.live(of.episode, owned.attempt)) as live:
        seen = await owned.observe(observation(of))
        wake = StepWake(episode=of.episode, attempt=1, step=0, observation_seq=seen)
        refused = await chain.refuse(backend.other, SUBJECTS, wake, "x" * 9_000_000, WORKER)
        told = await anext(live)
    assert isinstance(told.message, StepRefusal)
    assert (told.seq, told.message.reason) == (refused, "x" * 2_000), "told at once, and short enough for any server"
    assert await chain.refuse(backend.other, SUBJECTS, wake, "again", WORKER) is None
    with pytest.raises(ChainConflict):
        await chain.answer(backend.other, SUBJECTS, seen, step_request(of))
    assert refused is not None
    owned.refused(refused)
    ended = trajectory(of, num_observations=owned.num_observations, num_steps=owned.num_steps)
    await owned.finish(ended)
    assert (ended.num_observations, ended.num_steps) == (1, 0), "it is no step"


async def test_an_episode_is_ended_behind_a_refusal_too(backend: Backend) -> None:
    of = await admitted(backend)
    owned = await taken(backend, of)
    wake = StepWake(episode=of.episode, attempt=1, step=0, observation_seq=await owned.observe(observation(of)))
    await chain.refuse(backend.other, SUBJECTS, wake, "no", WORKER)
    ended = await chain.cancel(backend.bus, SUBJECTS, of, Outcome.CANCELLED, "enough", 5.0)
    assert (ended.attempt, ended.num_observations, ended.num_steps) == (1, 1, 0)


async def test_a_trajectory_names_its_records(backend: Backend) -> None:
    of = await admitted(backend)
    fenced = await taken(backend, of)
    await fenced.observe(observation(of, data=b"of the first attempt"))
    owned = await taken(backend, of, SECOND)
    for step in range(3):
        seen = await owned.observe(observation(of, step, attempt=2, data=b"screenshot %d" % step))
        owned.answered(await chain.answer(backend.bus, SUBJECTS, seen, step_request(of, step, attempt=2)))
    await owned.observe(observation(of, 3, attempt=2, data=b"screenshot 3"))
    ended = await chain.cancel(backend.bus, SUBJECTS, of, Outcome.CANCELLED, "the batch is complete", 5.0)
    assert (ended.num_observations, ended.num_steps) == (4, 3), "those of the first attempt do not count"
    found = [await chain.read(backend.other, SUBJECTS, ref) for ref in (*ended.observations, *ended.steps)]
    assert [record.message for record in found if record is not None] == [
        *(observation(of, step, attempt=2, data=b"screenshot %d" % step) for step in range(4)),
        *(step_request(of, step, attempt=2) for step in range(3)),
    ]
    beyond = RecordRef(of.episode, attempt=2, kind="act", step=3)
    assert await chain.read(backend.bus, SUBJECTS, beyond) is None
    admitted_as = await chain.read_task(backend.bus, SUBJECTS, of.episode)
    assert admitted_as is not None
    assert admitted_as.message == of


async def test_the_history_of_one_attempt(backend: Backend) -> None:
    of = await admitted(backend)
    await played(backend, of)
    owned = await taken(backend, of, SECOND)
    for step in range(12):
        seen = await owned.observe(observation(of, step, attempt=2))
        owned.answered(await chain.answer(backend.bus, SUBJECTS, seen, step_request(of, step, attempt=2)))
    records = await chain.history(backend.other, SUBJECTS, of.episode, 2)
    assert isinstance(start := records[0].message, EpisodeStart)
    assert start.draw
    assert [record.message for record in records] == [
        EpisodeStart(episode=of.episode, attempt=2, worker=SECOND, draw=start.draw),
        *(message for step in range(12) for message in (observation(of, step, attempt=2), step_request(of, step, attempt=2))),
    ]


async def test_a_new_owner_fences_the_old_one(backend: Backend) -> None:
    of = await admitted(backend)
    first = await taken(backend, of)
    seen = await first.observe(observation(of))
    second = await taken(backend, of, SECOND)
    assert (first.attempt, second.attempt) == (1, 2)
    with pytest.raises(ChainConflict):
        await chain.answer(backend.bus, SUBJECTS, seen, step_request(of))
    with pytest.raises(ChainConflict):
        await first.finish(trajectory(of))
    await second.observe(observation(of, attempt=2))


async def test_the_first_answer_wins(backend: Backend) -> None:
    of = await admitted(backend)
    seen = await (await taken(backend, of)).observe(observation(of))
    await chain.answer(backend.bus, SUBJECTS, seen, step_request(of))
    with pytest.raises(ChainConflict):
        await chain.answer(backend.other, SUBJECTS, seen, step_request(of, worker=SECOND))


async def test_an_owner_that_missed_the_answer_cannot_go_on_without_it(backend: Backend) -> None:
    of = await admitted(backend)
    owned = await taken(backend, of)
    await chain.answer(backend.bus, SUBJECTS, await owned.observe(observation(of)), step_request(of))
    with pytest.raises(ChainConflict):
        await owned.observe(observation(of, 1))


async def test_an_episode_ends_once(backend: Backend) -> None:
    of = await admitted(backend)
    owned, ended = await played(backend, of)
    await owned.finish(ended)
    with pytest.raises(ChainConflict):
        await owned.finish(trajectory(of, outcome=Outcome.FAILED))


async def test_cancelling_keeps_the_steps_and_fences_the_owner(backend: Backend) -> None:
    of = await admitted(backend)
    owned, played_so_far = await played(backend, of)
    ended = await chain.cancel(backend.other, SUBJECTS, of, Outcome.CANCELLED, "the batch is complete", 5.0)
    assert (ended.num_observations, ended.num_steps) == (played_so_far.num_observations, played_so_far.num_steps) == (1, 1)
    assert (ended.attempt, ended.outcome, ended.error) == (1, Outcome.CANCELLED, "the batch is complete")
    with pytest.raises(ChainConflict):
        await owned.observe(observation(of, 1))
    assert await chain.cancel(backend.bus, SUBJECTS, of, Outcome.CANCELLED, "again", 6.0) == ended


async def test_cancelling_what_nobody_took(backend: Backend) -> None:
    of = await admitted(backend)
    ended = await chain.cancel(backend.bus, SUBJECTS, of, Outcome.CANCELLED, "not needed", 5.0)
    assert (ended.attempt, ended.num_observations, ended.num_steps) == (0, 0, 0)
    assert await EpisodeChain.take(backend.bus, SUBJECTS, of, WORKER) == ended


async def test_a_trajectory_published_twice_is_stored_once(backend: Backend) -> None:
    ended = trajectory(task(), num_observations=1)
    await chain.publish_trajectory(backend.bus, SUBJECTS, ended)
    await chain.publish_trajectory(backend.other, SUBJECTS, ended)
    assert await backend.bus.last_seq(SUBJECTS.trajectories) == 1
