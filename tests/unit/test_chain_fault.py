"""The audit tells a sound chain from every kind of broken one."""

import pytest

from bus.ports import Record
from ops.audit import chain_fault
from schemas.messages import AnyMessage, EpisodeStart, Outcome
from tests.builders import WORKER, observation, step_request, task, trajectory

TASK = task()


def start(attempt: int) -> EpisodeStart:
    return EpisodeStart(episode=TASK.episode, attempt=attempt, worker=WORKER)


def records(*messages: AnyMessage) -> list[Record]:
    return [Record(stream="S", subject="s", seq=seq, message=message) for seq, message in enumerate(messages, start=1)]


OBS, ACT = observation(TASK), step_request(TASK)
OBS_2, ACT_2 = observation(TASK, attempt=2), step_request(TASK, attempt=2)
DONE = trajectory(TASK, num_observations=1, num_steps=1)


@pytest.mark.parametrize(
    "messages",
    [
        [TASK],
        [TASK, start(1), OBS],
        [TASK, start(1), OBS, ACT, DONE],
        [TASK, start(1), OBS, ACT, observation(TASK, 1), trajectory(TASK, num_observations=2, num_steps=1)],
        [TASK, start(1), OBS, start(2), OBS_2, ACT_2],
        [TASK, start(1), OBS, ACT, start(2), OBS_2, trajectory(TASK, num_observations=1, attempt=2)],
        [TASK, start(1), OBS, ACT, start(2), trajectory(TASK, attempt=2)],
        [TASK, trajectory(TASK, outcome=Outcome.CANCELLED, attempt=0)],
    ],
    ids=["queued", "waiting", "done", "done unanswered", "taken over", "done by the second", "done unseen", "never taken"],
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
        [TASK, start(1), OBS, observation(TASK, 1)],
        [TASK, start(1), OBS, ACT, trajectory(TASK, num_observations=1)],
        [TASK, start(1), OBS, ACT, trajectory(TASK, num_observations=2, num_steps=1)],
        [TASK, start(1), OBS, ACT, start(2), OBS_2, ACT_2, DONE],
    ],
    ids=[
        "no task",
        "skipped attempt",
        "no observation",
        "two answers",
        "gap",
        "stale owner",
        "after the end",
        "no answer",
        "too few steps",
        "too many observations",
        "end of the fenced attempt",
    ],
)
def test_broken_chains_are_named(messages: list[AnyMessage]) -> None:
    assert chain_fault(records(*messages)) is not None
