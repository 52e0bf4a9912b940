"""The checker tells a sound chain from every kind of broken one."""

import pytest

from bus.ports import Record
from bus.subjects import Subjects
from ops.audit.chains import chain_fault
from ops.audit.ledger import Link, link_of
from schemas.messages import AnyMessage, EpisodeStart, Observation, Outcome, StepRefusal, StepRequest, Task, Trajectory
from tests.builders import RUN, WORKER, observation, step_request, task, trajectory

TASK = task()
SUBJECTS = Subjects(RUN)


def start(attempt: int) -> EpisodeStart:
    return EpisodeStart(episode=TASK.episode, attempt=attempt, worker=WORKER)


def subject(message: AnyMessage) -> str:
    episode = TASK.episode
    match message:
        case Task():
            return SUBJECTS.chain_task(episode)
        case EpisodeStart():
            return SUBJECTS.chain_record(episode, message.attempt, "start", 0)
        case Observation():
            return SUBJECTS.chain_record(episode, message.attempt, "obs", message.step)
        case StepRequest() | StepRefusal():
            return SUBJECTS.chain_record(episode, message.attempt, "act", message.step)
        case Trajectory():
            return SUBJECTS.chain_done(episode)
        case _:
            raise AssertionError(message)


def links(*messages: AnyMessage) -> list[Link]:
    return [
        link_of(Record(stream="S", subject=subject(message), seq=seq, message=message))
        for seq, message in enumerate(messages, start=1)
    ]


OBS, ACT = observation(TASK), step_request(TASK)
OBS_2, ACT_2 = observation(TASK, attempt=2), step_request(TASK, attempt=2)
DONE = trajectory(TASK, num_observations=1, num_steps=1)
REFUSED = StepRefusal(episode=TASK.episode, attempt=1, step=0, reason="it does not fit", worker=WORKER)
FAILED = trajectory(TASK, num_observations=1, num_steps=0, outcome=Outcome.FAILED)


@pytest.mark.parametrize(
    "messages",
    [
        [TASK],
        [TASK, start(1), OBS],
        [TASK, start(1), OBS, ACT, DONE],
        [TASK, start(1), OBS, ACT, observation(TASK, 1), trajectory(TASK, num_observations=2, num_steps=1)],
        [TASK, start(1), OBS, start(2), OBS_2, ACT_2],
        [TASK, start(1), OBS, REFUSED],
        [TASK, start(1), OBS, REFUSED, FAILED],
        [TASK, start(1), OBS, REFUSED, start(2), OBS_2, ACT_2],
        [TASK, start(1), OBS, ACT, start(2), OBS_2, trajectory(TASK, num_observations=1, attempt=2)],
        [TASK, start(1), OBS, ACT, start(2), trajectory(TASK, attempt=2)],
        [TASK, trajectory(TASK, outcome=Outcome.CANCELLED, attempt=0)],
    ],
    ids=[
        "queued",
        "waiting",
        "done",
        "done unanswered",
        "taken over",
        "refused",
        "done refused",
        "taken over behind a refusal",
        "done by the second",
        "done unseen",
        "never taken",
    ],
)
def test_sound_chains_have_no_fault(messages: list[AnyMessage]) -> None:
    assert chain_fault(links(*messages)) is None


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
        [TASK, start(1), REFUSED],
        [TASK, start(1), OBS, REFUSED, ACT],
        [TASK, start(1), OBS, REFUSED, REFUSED],
        [TASK, start(1), OBS, REFUSED, observation(TASK, 1)],
        [TASK, start(1), OBS, REFUSED, DONE],
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
        "refusal of nothing",
        "answer behind a refusal",
        "two refusals",
        "on behind a refusal",
        "a refusal counted as a step",
    ],
)
def test_broken_chains_are_named(messages: list[AnyMessage]) -> None:
    assert chain_fault(links(*messages)) is not None


def test_a_message_on_the_subject_of_another_is_named() -> None:
    misplaced = Record(stream="S", subject=subject(observation(TASK, 1)), seq=3, message=observation(TASK))

    assert chain_fault([*links(TASK, start(1)), link_of(misplaced)]) == "record 3 is not what its subject says"
