"""What the display and the result are folded from."""

import anyio
import msgspec
import pytest

from bus.memory import MemoryBus
from bus.subjects import Subjects
from ops.monitor.run_watch import RunState, watching
from ops.quickstart.results import judgements_of
from schemas.bus_config import BusConfig
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import AnyMessage, Checkpoint, Heartbeat, Judgement, Role, Split, Verdict
from tests.builders import RUN, checkpoint, task, trajectory
from tests.deadlines import HANGS_S

SUBJECTS = Subjects(RUN)


def judgement(
    name: str,
    verdict: Verdict,
    *,
    split: Split = Split.TRAIN,
    version: int = 0,
    unparsed: int = 0,
    rubric: str = "r",
) -> Judgement:
    of = msgspec.structs.replace(task(name, split=split), policy_version=PolicyVersion(version))
    ended = msgspec.structs.replace(trajectory(of), num_unparsed=unparsed)
    reward = {Verdict.SUCCESS: 1.0, Verdict.FAILURE: 0.0}.get(verdict)
    return Judgement(
        episode=of.episode,
        group=of.group,
        split=split,
        rubric=rubric,
        verdict=verdict,
        reward=reward,
        trajectory=ended,
    )


def test_success_counts_judged_training_episodes_only() -> None:
    state = RunState()
    for number, verdict in enumerate([Verdict.SUCCESS, Verdict.FAILURE, Verdict.EXCLUDED, Verdict.ERROR]):
        state.apply(judgement(f"t{number}", verdict), now=0.0)
    state.apply(judgement("e", Verdict.SUCCESS, split=Split.EVAL), now=0.0)
    assert (state.num_episodes, state.num_unscored, state.success) == (4, 2, 0.5)


def test_evaluations_are_kept_by_version() -> None:
    state = RunState()
    state.apply(judgement("a", Verdict.FAILURE, split=Split.EVAL), now=0.0)
    for number in range(3):
        state.apply(judgement(f"t{number}", Verdict.SUCCESS), now=0.0)
    state.apply(judgement("a", Verdict.SUCCESS, split=Split.EVAL, version=2), now=0.0)
    state.apply(judgement("b", Verdict.FAILURE, split=Split.EVAL, version=2), now=0.0)
    assert state.evaluations[PolicyVersion(0)].success == 0.0
    assert state.evaluations[PolicyVersion(2)].success == 0.5
    assert [point.num_episodes for point in state.curve(bar=None, num_expected=0).held_out] == [0, 3]


def test_an_evaluation_counts_what_was_scored() -> None:
    state = RunState()
    for number, verdict in enumerate([Verdict.SUCCESS, Verdict.FAILURE, Verdict.EXCLUDED, Verdict.ERROR]):
        state.apply(judgement(f"e{number}", verdict, split=Split.EVAL), now=0.0)
    evaluation = state.evaluations[PolicyVersion(0)]
    assert (evaluation.num_judged, evaluation.num_scored, evaluation.success) == (4, 2, 0.5)


def test_success_is_the_verdict_and_not_the_reward() -> None:
    state = RunState()
    state.apply(msgspec.structs.replace(judgement("a", Verdict.SUCCESS), reward=-0.5), now=0.0)
    state.apply(msgspec.structs.replace(judgement("b", Verdict.FAILURE), reward=0.9), now=0.0)
    assert state.success == 0.5


@pytest.mark.anyio
async def test_one_rubric_is_shown_whatever_another_says() -> None:
    """Four training episodes and two held-out ones, each judged twice: the second rubric says the opposite."""
    bus, config = MemoryBus(SUBJECTS), BusConfig(run=RUN, rubrics=("r", "strict"))
    verdicts = [("t0", Split.TRAIN, True), ("t1", Split.TRAIN, True), ("t2", Split.TRAIN, True), ("t3", Split.TRAIN, False)]
    verdicts += [("e0", Split.EVAL, True), ("e1", Split.EVAL, True)]
    for name, split, good in verdicts:
        for rubric, says in (("strict", not good), ("r", good)):
            given = judgement(name, Verdict.SUCCESS if says else Verdict.FAILURE, split=split, rubric=rubric)
            await bus.append(SUBJECTS.judged, SUBJECTS.judgement(split, rubric, given.episode), given)
    async with watching(bus, SUBJECTS, config) as watch:
        with anyio.fail_after(HANGS_S):
            await watch.wait_until(lambda state: state.num_evaluated(PolicyVersion(0)) == 2)
        state = watch.state
        assert (state.num_episodes, state.success) == (4, 0.75)
        assert state.evaluations[PolicyVersion(0)].success == 1.0
        assert sum(state.num_played_by.values()) == 6
    assert [given.rubric for given in await judgements_of(bus, SUBJECTS, "r", Split.EVAL)] == ["r", "r"]


def test_the_largest_mismatch_and_staleness_are_remembered() -> None:
    state = RunState()
    state.apply(checkpoint(0), now=0.0)
    state.apply(checkpoint(1, mismatch=0.01, staleness_max=1.0, staleness_mean=0.5), now=0.0)
    state.apply(checkpoint(2, mismatch=0.003, staleness_max=0.0, staleness_mean=0.0), now=0.0)
    assert max(state.mismatches) == 0.01
    assert max(state.staleness) == 1.0
    assert [mark.version for mark in state.versions] == [1, 2]


def consumed(version: int, *, judged_seq: int, num_trajectories: int) -> Checkpoint:
    return msgspec.structs.replace(checkpoint(version), judged_seq=judged_seq, num_trajectories=num_trajectories)


@pytest.mark.parametrize("versions_first", [True, False])
def test_judgements_that_have_aged_out_are_counted_by_the_versions(versions_first: bool) -> None:
    """Versions consumed 600 episodes, JUDGED still holds 64 of these and 40 that wait; an evaluation came in between."""
    state = RunState()
    marks = [(number * 100, number * 64) for number in range(9)] + [(2000, 600)]
    versions: list[tuple[AnyMessage, int]] = [
        (consumed(version, judged_seq=seq, num_trajectories=number), 0) for version, (seq, number) in enumerate(marks)
    ]
    judged: list[tuple[AnyMessage, int]] = [(judgement(f"t{seq}", Verdict.SUCCESS), seq) for seq in range(1937, 2001)]
    judged += [(judgement("e", Verdict.SUCCESS, split=Split.EVAL, version=9), 2001)]
    judged += [(judgement(f"t{seq}", Verdict.SUCCESS), seq) for seq in range(2002, 2042)]
    for message, seq in [*versions, *judged] if versions_first else [*judged, *versions]:
        state.apply(message, now=0.0, seq=seq)
    assert (state.num_episodes, state.num_waiting) == (640, 40)
    assert state.metrics_now(0.0, max_staleness=None, queue_depth=None).num_episodes == 640
    curve = state.curve(bar=None, num_expected=0)
    assert [point.num_episodes for point in curve.train] == [568, 600, 632]
    assert [point.num_episodes for point in curve.held_out] == [600]


def test_stored_episodes_are_counted_once_however_often_training_passes_over_them() -> None:
    state = RunState()
    for seq in range(1, 15):
        state.apply(judgement(f"t{seq}", Verdict.SUCCESS), now=0.0, seq=seq)
    for version, (seq, number) in enumerate([(0, 0), (6, 6), (12, 12), (14, 14), (6, 20), (12, 26)]):
        state.apply(consumed(version, judged_seq=seq, num_trajectories=number), now=0.0)
    assert (state.num_episodes, state.num_waiting) == (14, 0)


def test_figures_say_parse_rate_and_speed() -> None:
    state = RunState()
    heartbeat = Heartbeat(role=Role.JUDGE, worker=WorkerId("j"), state="waiting", at=0.0)
    state.apply(heartbeat, now=0.0)
    for number in range(40):
        state.apply(judgement(f"t{number}", Verdict.SUCCESS), now=float(number))
    metrics = state.metrics_now(39.0, max_staleness=1, queue_depth=3)
    assert metrics.episodes_per_s == pytest.approx(21 / 20)
    assert (metrics.num_episodes, metrics.success_window, metrics.queue_depth) == (40, 40, 3)
