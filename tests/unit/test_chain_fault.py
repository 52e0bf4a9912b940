"""The audit tells a sound chain from every kind of broken one."""

import pytest

from bus.ports import Record
from ops.audit import chain_fault
from schemas.messages import AnyMessage, EpisodeStart, RecordRef
from tests.builders import WORKER, observation, step_request, task, trajectory

TASK = task()


def start(attempt: int) -> EpisodeStart:
    return EpisodeStart(episode=TASK.episode, attempt=attempt, worker=WORKER)


def refs(*seqs: int) -> tuple[RecordRef, ...]:
    return tuple(RecordRef(shard=0, seq=seq) for seq in seqs)


def records(*messages: AnyMessage) -> list[Record]:
    return [Record(stream="S", subject="s", seq=seq, message=message) for seq, message in enumerate(messages, start=1)]


OBS, ACT = observation(TASK), step_request(TASK)
DONE = trajectory(TASK, observations=refs(3), steps=refs(4))


@pytest.mark.parametrize(
    "messages",
    [
        [TASK],
        [TASK, start(1), OBS],
        [TASK, start(1), OBS, ACT, DONE],
        [TASK, start(1), OBS, start(2), observation(TASK, attempt=2), step_request(TASK, attempt=2)],
    ],
    ids=["queued", "waiting", "done", "taken over"],
)
def test_sound_chains_have_no_fault(messages: list[AnyMessage]) -> None:
    assert chain_fault(records(*messages)) is None


@pytest.mark.parametrize(
    "messages",
    [
        [start(1), OBS],
        [TASK, start(2)],
        [TASK, start(1), ACT],
        [TASK, start(1), OBS, ACT, ACT],
        [TASK, start(1), observation(TASK, step=1)],
        [TASK, start(1), OBS, start(2), ACT],
        [TASK, start(1), OBS, ACT, DONE, OBS],
        [TASK, start(1), OBS, ACT, trajectory(TASK, observations=refs(3))],
    ],
    ids=["no task", "skipped attempt", "no observation", "two answers", "gap", "stale owner", "after the end", "untrue refs"],
)
def test_broken_chains_are_named(messages: list[AnyMessage]) -> None:
    assert chain_fault(records(*messages)) is not None
