"""What an iteration makes of its judgements, by value."""

import pytest
from msgspec.structs import replace

from schemas.ids import PolicyVersion
from schemas.messages import Judgement, Outcome, Trajectory, Verdict
from tests.builders import judgement
from tests.support.training.trainer_world import train_task
from trainer.episodes.consumption import plan_batch, staleness


def judged(index: int, reward: float | None, *versions: int, unparsed: int = 0) -> Judgement:
    played = Trajectory(
        task=train_task(index),
        attempt=1,
        outcome=Outcome.DONE,
        num_steps=len(versions),
        versions=tuple(PolicyVersion(version) for version in versions),
        num_unparsed=unparsed,
    )
    return judgement(played, reward)


def test_staleness_counts_from_the_oldest_version_that_played() -> None:
    assert staleness(judged(0, 1.0, 4, 3, 4).trajectory, 5) == 2
    assert staleness(judged(0, 1.0).trajectory, 5) == 0


def test_a_batch_is_sorted_into_fresh_stale_and_unscored() -> None:
    batch = [judged(0, 1.0, 5), judged(1, 0.0, 4, 5, unparsed=1), judged(2, 1.0, 3), judged(3, None), judged(4, 1.0, 4)]
    plan = plan_batch(batch, version=5, bound=1)
    assert [item.trajectory.task.index for item in plan.fresh] == [0, 1, 4]
    assert [item.trajectory.task.index for item in plan.successes] == [0, 4]
    assert (plan.num_stale, plan.num_unscored) == (1, 1)
    assert plan.histogram == {0: 1, 1: 2}
    assert plan.metrics() == {
        "success": 0.75,
        "reward": 0.75,
        "parse_rate": 0.8,
        "staleness_mean": pytest.approx(2 / 3),
        "staleness_max": 1.0,
        "discarded_stale": 1.0,
        "discarded_collapsed": 0.0,
        "unscored": 1.0,
        "staleness_0": 1.0,
        "staleness_1": 2.0,
    }


def test_success_is_the_verdict_whatever_the_reward() -> None:
    """Shaping took more than a success earned, partial credit was given for a failure, an error has nothing."""
    partial = replace(judged(1, 0.0, 5), reward=0.75)
    shaped = replace(judged(0, 1.0, 5), reward=-0.25)
    error = replace(judged(2, None, 5), verdict=Verdict.ERROR)
    plan = plan_batch([shaped, partial, error], version=5, bound=1)
    assert [item.trajectory.task.index for item in plan.successes] == [0]
    assert (plan.success, plan.reward, plan.num_unscored) == (0.5, 0.25, 1)


def test_offline_every_age_is_fresh_and_none_is_reported() -> None:
    plan = plan_batch([judged(0, 1.0, 50), judged(1, 0.0, 0), judged(2, None, 3)], version=5, bound=None)
    assert len(plan.fresh) == 2
    assert plan.num_stale == 0
    assert not any(name.startswith("staleness") for name in plan.metrics())


def test_an_empty_batch_has_no_success() -> None:
    assert plan_batch([], version=0, bound=0).metrics()["success"] == 0.0
