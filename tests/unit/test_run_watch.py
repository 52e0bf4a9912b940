"""What the display and the result are folded from."""

import msgspec
import pytest

from ops.run_watch import RunState
from schemas.ids import GroupId, PolicyVersion, WorkerId
from schemas.messages import Checkpoint, Heartbeat, Judgement, Role, Split, Verdict
from tests.builders import RUN, task, trajectory


def judgement(name: str, verdict: Verdict, *, split: Split = Split.TRAIN, version: int = 0, unparsed: int = 0) -> Judgement:
    of = msgspec.structs.replace(task(name, split=split), policy_version=PolicyVersion(version))
    ended = msgspec.structs.replace(trajectory(of), num_unparsed=unparsed)
    reward = {Verdict.SUCCESS: 1.0, Verdict.FAILURE: 0.0}.get(verdict)
    return Judgement(
        episode=of.episode,
        group=GroupId("g"),
        split=split,
        rubric="r",
        verdict=verdict,
        reward=reward,
        trajectory=ended,
    )


def checkpoint(version: int, **metrics: float) -> Checkpoint:
    return Checkpoint(
        run=RUN,
        version=PolicyVersion(version),
        uri="file:///checkpoint",
        files=(),
        parent=None,
        trainer_step=0,
        judged_seq=0,
        metrics=metrics,
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


def test_the_largest_mismatch_and_staleness_are_remembered() -> None:
    state = RunState()
    state.apply(checkpoint(0), now=0.0)
    state.apply(checkpoint(1, mismatch=0.01, staleness_max=1.0, staleness_mean=0.5), now=0.0)
    state.apply(checkpoint(2, mismatch=0.003, staleness_max=0.0, staleness_mean=0.0), now=0.0)
    assert max(state.mismatches) == 0.01
    assert max(state.staleness) == 1.0
    assert [mark.version for mark in state.versions] == [1, 2]


def test_figures_say_parse_rate_and_speed() -> None:
    state = RunState()
    heartbeat = Heartbeat(role=Role.JUDGE, worker=WorkerId("j"), state="waiting", at=0.0)
    state.apply(heartbeat, now=0.0)
    for number in range(40):
        state.apply(judgement(f"t{number}", Verdict.SUCCESS), now=float(number))
    figures = state.figures(39.0, max_staleness=1, queue_depth=3)
    assert figures.episodes_per_s == pytest.approx(21 / 20)
    assert (figures.num_episodes, figures.success_window, figures.queue_depth) == (40, 40, 3)
