"""The checker that follows a run whose records age out, by value."""

import pytest

from bus.ports import Record
from ops.audit.following import Passing
from schemas.ids import PolicyVersion
from schemas.messages import AnyMessage, Checkpoint, EpisodeStart, Outcome, Trajectory
from tests import builders
from tests.builders import RUN, WORKER

TASK = builders.task()
END = Trajectory(task=TASK, attempt=1, outcome=Outcome.DONE)
JUDGED = builders.judgement(END, 1.0)


def start(attempt: int) -> EpisodeStart:
    return EpisodeStart(episode=TASK.episode, attempt=attempt, worker=WORKER)


def version(number: int, seq: int) -> Checkpoint:
    return Checkpoint(
        run=RUN,
        version=PolicyVersion(number),
        uri="",
        files=(),
        parent=None,
        trainer_step=0,
        judged_seq=seq,
        num_trajectories=seq,
    )


def passed(*records: tuple[int, str, AnyMessage]) -> list[str]:
    passing = Passing()
    for seq, subject, message in records:
        passing.apply(Record("S", subject, seq, message))
    return passing.proof()


SOUND: list[tuple[int, str, AnyMessage]] = [
    (1, "r.ep.0.e.task", TASK),
    (2, "r.ep.0.e.1.start.0", start(1)),
    (3, "r.ep.0.e.done", END),
    (1, "r.trajectory.train.e", END),
    (1, "r.judged.train.x.e", JUDGED),
    (1, "r.checkpoint.0", version(0, 0)),
    (2, "r.checkpoint.1", version(1, 1)),
]


def test_a_sound_run_in_any_order_of_its_streams() -> None:
    assert passed(*SOUND) == []
    assert passed(*SOUND[3:], *SOUND[:3]) == []


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ((9, "r.ep.0.e.task", TASK), "was admitted 2 times"),
        ((9, "r.ep.0.e.1.start.0", start(1)), "attempt 1 at"),
        ((9, "r.ep.0.e.2.start.0", start(2)), "was begun again behind its end"),
        ((9, "r.ep.0.e.done", END), "was ended 2 times"),
        ((9, "r.trajectory.train.e", END), "was published 2 times"),
        ((9, "r.judged.train.x.e", JUDGED), "was judged 2 times"),
        ((9, "r.checkpoint.3", version(3, 9)), "version 3 stands where version 2 belongs"),
        ((9, "r.checkpoint.2", version(2, 1)), "version 2 consumed nothing"),
    ],
)
def test_what_is_broken_is_said(record: tuple[int, str, AnyMessage], said: str) -> None:
    assert any(said in fault for fault in passed(*SOUND, record))


@pytest.mark.parametrize(("missing", "said"), [(0, "was never admitted"), (3, "never ended"), (4, "was never judged")])
def test_what_is_missing_is_said(missing: int, said: str) -> None:
    assert any(said in fault for fault in passed(*SOUND[:missing], *SOUND[missing + 1 :]))
