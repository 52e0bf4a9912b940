"""Repairing what is under way, among records that no reader takes."""

import pytest
from msgspec import structs

from bus import chain
from schemas.messages import Outcome, Split, Trajectory
from tests.builders import task, trajectory
from tests.contract.backends import SUBJECTS, Backend
from trainer.feeding.admission import Admitter

pytestmark = pytest.mark.anyio
GARBAGE = b"\xc1 garbage"


async def test_an_end_is_published_behind_what_no_reader_takes(backend: Backend) -> None:
    of = task()
    await chain.admit(backend.bus, SUBJECTS, of)
    end = await chain.cancel(backend.bus, SUBJECTS, of, Outcome.CANCELLED, "nobody published it", 5.0)
    subject = SUBJECTS.trajectory(of.split, of.episode)
    await backend.bus.append_bytes(SUBJECTS.trajectories, subject, GARBAGE)
    assert await Admitter(backend.bus, SUBJECTS).repair(of.episode, of.split)
    published = await backend.bus.last(SUBJECTS.trajectories, subject)
    assert published is not None
    assert published.message == end


async def test_an_end_that_no_reader_takes_is_a_failure_that_says_so(backend: Backend) -> None:
    of = task()
    await chain.admit(backend.bus, SUBJECTS, of)
    await backend.bus.append_bytes(SUBJECTS.episodes(SUBJECTS.shard(of.episode)), SUBJECTS.chain_done(of.episode), GARBAGE)
    assert await Admitter(backend.bus, SUBJECTS).repair(of.episode, of.split)
    published = await backend.bus.last(SUBJECTS.trajectories, SUBJECTS.trajectory(of.split, of.episode))
    assert published is not None
    assert isinstance(published.message, Trajectory)
    assert published.message.outcome is Outcome.FAILED


async def test_an_end_of_another_task_is_not_the_episodes(backend: Backend) -> None:
    """Published as it stands, it would come before judges and be counted under a split that nobody waits for."""
    of = task(split=Split.EVAL)
    await chain.admit(backend.bus, SUBJECTS, of)
    forged = trajectory(structs.replace(of, split=Split.TRAIN), num_steps=0, num_observations=0)
    stream = SUBJECTS.episodes(SUBJECTS.shard(of.episode))
    await backend.bus.append(stream, SUBJECTS.chain_done(of.episode), forged)
    assert await Admitter(backend.bus, SUBJECTS).repair(of.episode, of.split)
    [published] = await backend.bus.history(SUBJECTS.trajectories, SUBJECTS.everything("trajectory"))
    assert isinstance(published.message, Trajectory)
    assert published.message.task == of
    assert published.message.outcome is Outcome.FAILED


async def test_what_no_reader_takes_is_queued_until_it_is_rejected(backend: Backend) -> None:
    of = task()
    await chain.admit(backend.bus, SUBJECTS, of)
    subject = SUBJECTS.task(of.split, of.episode)
    await backend.bus.append_bytes(SUBJECTS.tasks, subject, GARBAGE)
    admitter = Admitter(backend.bus, SUBJECTS)
    assert await admitter.repair(of.episode, of.split)
    assert await backend.bus.subjects(SUBJECTS.tasks, subject) == {subject: 1}
    await backend.bus.purge(SUBJECTS.tasks, subject)
    assert await admitter.repair(of.episode, of.split)
    queued = await backend.bus.last(SUBJECTS.tasks, subject)
    assert queued is not None
    assert queued.message == of
