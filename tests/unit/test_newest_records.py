"""Whoever shows or counts what is there reads on where the newest record is one that no reader takes."""

import pytest

from bus import chain
from bus.memory import MemoryBus
from bus.skipping import skipped
from bus.stored import newest
from bus.subjects import Subjects
from ops.web.live_episode import live_episode, screenshot_at
from ops.web.stream_store import StreamStore
from schemas.errors import RecordGone
from tests.builders import RUN, WORKER, judgement, observation, step_request, task, trajectory

pytestmark = pytest.mark.anyio
SUBJECTS = Subjects(RUN)
GARBAGE = b"\xc1 garbage"


@pytest.fixture
def bus() -> MemoryBus:
    return MemoryBus(SUBJECTS)


async def test_it_is_left_out_once_by_name(bus: MemoryBus) -> None:
    subject = SUBJECTS.chain_task(task().episode)
    assert await newest(bus, SUBJECTS.episodes(0), subject) is None
    seq = await bus.append_bytes(SUBJECTS.episodes(0), subject, GARBAGE)
    num_before = skipped.count
    for _ in range(2):
        assert await newest(bus, SUBJECTS.episodes(0), subject) is None
    assert skipped.count == num_before + 1
    assert skipped.newest.startswith(f"record {seq}")
    await bus.append(SUBJECTS.episodes(0), subject, task())
    found = await newest(bus, SUBJECTS.episodes(0), subject)
    assert found is not None
    assert found.message == task()


async def test_a_misplaced_record_is_one_as_well(bus: MemoryBus) -> None:
    subject = SUBJECTS.chain_task(task().episode)
    await bus.append(SUBJECTS.episodes(0), subject, task("other"))
    assert await newest(bus, SUBJECTS.episodes(0), subject) is None


@pytest.mark.parametrize("kind", ["obs", "act", "done"])
async def test_a_live_episode_is_shown_without_what_no_reader_takes(bus: MemoryBus, kind: str) -> None:
    of = task()
    await chain.admit(bus, SUBJECTS, of)
    owned = await chain.EpisodeChain.take(bus, SUBJECTS, of, WORKER)
    assert isinstance(owned, chain.EpisodeChain)
    owned.answered(await chain.answer(bus, SUBJECTS, await owned.observe(observation(of)), step_request(of)))
    subject = SUBJECTS.chain_done(of.episode) if kind == "done" else SUBJECTS.chain_record(of.episode, 1, kind, 1)
    await bus.append_bytes(SUBJECTS.episodes(0), subject, GARBAGE)
    shown = await live_episode(bus, SUBJECTS, of.episode, attempt=1)
    assert shown.task.instruction == of.instruction
    assert (shown.now is None) == (kind == "obs")
    assert shown.outcome == ""


async def test_a_garbled_task_or_screenshot_is_not_kept(bus: MemoryBus) -> None:
    of = task()
    stream = SUBJECTS.episodes(0)
    await bus.append_bytes(stream, SUBJECTS.chain_task(of.episode), GARBAGE)
    with pytest.raises(RecordGone):
        await live_episode(bus, SUBJECTS, of.episode, attempt=1)
    await bus.append_bytes(stream, SUBJECTS.chain_record(of.episode, 1, "obs", 0), GARBAGE)
    with pytest.raises(RecordGone):
        await screenshot_at(bus, SUBJECTS, of.episode, 1, 0, "any")


async def test_an_episode_whose_published_end_is_garbled_is_shown_by_its_judgement(bus: MemoryBus) -> None:
    of = task()
    ended = trajectory(of)
    await bus.append_bytes(SUBJECTS.trajectories, SUBJECTS.trajectory(of.split, of.episode), GARBAGE)
    ruled = judgement(ended)
    await bus.append(SUBJECTS.judged, SUBJECTS.judgement(ruled.split, ruled.rubric, ruled.episode), ruled)
    fetched = await StreamStore(bus, SUBJECTS).episode(of.episode)
    assert fetched is not None
