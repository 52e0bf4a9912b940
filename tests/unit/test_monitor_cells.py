"""Live episodes, folded from small messages or set from the subjects of their chains."""

import msgspec
import pytest

from bus.subjects import Subjects
from ops.monitor.cells import Cell, Cells, Phase, by_attention
from ops.monitor.chains import ChainState, chain_state
from schemas.ids import EpisodeId, WorkerId
from schemas.messages import AnyMessage, EpisodeStart, Outcome, Split, StepPhase, Verdict
from tests.builders import RUN, WORKER, judgement, task, trajectory

NAMES = Subjects(RUN)
TASK = task("t1", max_steps=5)
BROWSER = WorkerId("browser-1")


def told(phase: str, step: int, *, attempt: int = 1, worker: WorkerId = BROWSER) -> StepPhase:
    assert phase in ("deciding", "acting")
    return StepPhase(
        episode=TASK.episode,
        attempt=attempt,
        step=step,
        phase="acting" if phase == "acting" else "deciding",
        worker=worker,
        policy=WorkerId("policy-1"),
    )


def start(attempt: int = 1, worker: WorkerId = BROWSER) -> EpisodeStart:
    return EpisodeStart(episode=TASK.episode, attempt=attempt, worker=worker)


def cells(*, capacity: int = 100) -> Cells:
    return Cells(keep_s=10.0, capacity=capacity)


def only(of: Cells) -> Cell:
    (cell,) = of
    return cell


def test_an_episode_goes_through_its_phases() -> None:
    found = cells()
    seen = []
    story: list[AnyMessage] = [TASK, start(), told("deciding", 0), told("acting", 0), told("deciding", 1)]
    for now, message in enumerate([*story, trajectory(TASK, num_steps=1)]):
        found.apply(message, float(now))
        cell = only(found)
        seen.append((cell.phase, cell.step, cell.since))
    assert seen == [
        (Phase.QUEUED, 0, 0.0),
        (Phase.OPENING, 0, 1.0),
        (Phase.DECIDING, 0, 2.0),
        (Phase.ACTING, 0, 3.0),
        (Phase.DECIDING, 1, 4.0),
        (Phase.JUDGING, 0, 5.0),
    ]
    found.apply(judgement(trajectory(TASK)), 6.0)
    cell = only(found)
    assert (cell.phase, cell.verdict, cell.reward, cell.outcome) == (Phase.ENDED, Verdict.SUCCESS, 1.0, Outcome.DONE)
    assert (cell.task, cell.split, cell.site, cell.max_steps, cell.admitted_at) == (TASK.task, Split.TRAIN, "demo", 5, 0.0)
    assert (cell.worker, cell.policy) == (WORKER, "policy-1")


@pytest.mark.parametrize(
    "late",
    [told("deciding", 1), told("acting", 0), told("acting", 7, attempt=1), start(1), TASK],
    ids=["same again", "earlier step", "earlier attempt", "earlier start", "task again"],
)
def test_a_cell_never_goes_back(late: AnyMessage) -> None:
    found = cells()
    for message in (TASK, start(2), told("deciding", 1, attempt=2)):
        found.apply(message, 1.0)
    before = msgspec.json.encode(only(found))
    found.apply(late, 9.0)
    assert msgspec.json.encode(only(found)) == before


def test_a_new_owner_begins_anew() -> None:
    found = cells()
    for message in (TASK, start(1), told("acting", 3), start(2, WorkerId("browser-2"))):
        found.apply(message, 1.0)
    cell = only(found)
    assert (cell.phase, cell.attempt, cell.step, cell.worker) == (Phase.OPENING, 2, 0, "browser-2")


def test_nothing_comes_behind_the_end() -> None:
    found = cells()
    for message in (TASK, start(), trajectory(TASK, outcome=Outcome.FAILED), told("acting", 2), start(2)):
        found.apply(message, 1.0)
    assert only(found).phase is Phase.JUDGING
    assert only(found).outcome is Outcome.FAILED


def test_what_was_missed_is_set_from_the_chain() -> None:
    for subjects, phase, step in (
        ([], Phase.QUEUED, 0),
        ([("start", 0)], Phase.OPENING, 0),
        ([("start", 0), ("obs", 0)], Phase.DECIDING, 0),
        ([("start", 0), ("obs", 0), ("act", 0)], Phase.ACTING, 0),
        ([("start", 0), ("obs", 0), ("act", 0), ("obs", 1)], Phase.DECIDING, 1),
    ):
        found = cells()
        found.apply(TASK, 0.0)
        chain = [NAMES.chain_record(TASK.episode, 2, kind, number) for kind, number in subjects]
        # The attempt before, which was lost, had come further.
        before = [NAMES.chain_record(TASK.episode, 1, kind, 0) for kind in ("start", "obs", "act")] if chain else []
        found.place(TASK.episode, chain_state([NAMES.chain_task(TASK.episode), *before, *chain]), 1.0)
        assert (only(found).phase, only(found).step) == (phase, step)


def test_subjects_say_how_far_a_chain_is() -> None:
    episode = EpisodeId("train-r0000-done-m0")
    subjects = [
        NAMES.chain_task(episode),
        *(NAMES.chain_record(episode, 3, kind, step) for kind in ("obs", "act") for step in range(12)),
        NAMES.chain_record(episode, 3, "start", 0),
        NAMES.chain_done(episode),
    ]
    assert chain_state(subjects) == ChainState(attempt=3, num_observations=12, num_answers=12, is_done=True)


def test_a_judgement_of_an_unknown_episode_makes_no_cell() -> None:
    """A monitor that joins reads those of the whole run."""
    found = cells()
    found.apply(judgement(trajectory(TASK)), 0.0)
    assert len(found) == 0


def test_ended_episodes_leave_in_time_and_the_oldest_for_want_of_room() -> None:
    found = cells(capacity=3)
    tasks = [task(f"t{number}") for number in range(4)]
    for number, of in enumerate(tasks[:3]):
        found.apply(of, float(number))
    found.apply(tasks[3], 3.0)
    assert (len(found), found.num_unkept) == (3, 1)
    for number, of in enumerate(tasks[:2]):
        found.apply(judgement(trajectory(of)), 4.0 + number)
    found.expire(14.5)
    assert set(found.by_episode) == {tasks[1].episode, tasks[2].episode}
    found.apply(tasks[3], 15.0)
    assert tasks[3].episode in found.by_episode
    assert found.counts()[Phase.QUEUED] == 2


def test_the_stuck_ones_are_shown_first() -> None:
    found = cells()
    found.apply(task("queued"), 0.0)
    for name, at in (("late", 5.0), ("stuck", 1.0)):
        of = task(name)
        found.apply(of, 0.0)
        found.apply(EpisodeStart(episode=of.episode, attempt=1, worker=BROWSER), at)
    assert [cell.task for cell in by_attention(found.by_episode)] == ["stuck", "late", "queued"]
