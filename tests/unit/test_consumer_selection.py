"""Which records a consumer gets, and where it begins: by value."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from bus.consumer.selection import EpisodeSelection, RewardRange, choices, of_judgements, of_trajectories, version_range
from bus.consumer.start import BEGINNING, NEW, After, TailStart, tail_start
from schemas.errors import ConfigurationError
from schemas.ids import PolicyVersion
from schemas.messages import Judgement, Outcome, Trajectory, Verdict
from tests.builders import judgement, task, trajectory

ANY = RewardRange()


def played(*versions: int, outcome: Outcome = Outcome.ANSWERED, reward: float | None = 1.0) -> Trajectory:
    ended = trajectory(task(), outcome=outcome, reward=reward)
    return msgspec.structs.replace(ended, versions=tuple(map(PolicyVersion, versions)))


def judged(reward: float | None, verdict: Verdict = Verdict.SUCCESS) -> Judgement:
    return msgspec.structs.replace(judgement(played(1), reward), verdict=verdict)


@pytest.mark.parametrize(
    ("selection", "accepted"),
    [
        (EpisodeSelection(), True),
        (EpisodeSelection(outcomes=frozenset({Outcome.ANSWERED, Outcome.DONE})), True),
        (EpisodeSelection(outcomes=frozenset({Outcome.FAILED})), False),
        (EpisodeSelection(website="demo:click_button?seed=1"), True),
        (EpisodeSelection(website="demo:click_*"), True),
        (EpisodeSelection(website="demo:click_button"), False),
        (EpisodeSelection(task="t1"), True),
        (EpisodeSelection(task="t2"), False),
        (EpisodeSelection(versions=range(2, 5)), True),
        (EpisodeSelection(versions=range(3, 5)), False),
    ],
)
def test_what_is_asked_of_an_episode(selection: EpisodeSelection, accepted: bool) -> None:
    assert selection.accepts(played(2, 3)) is accepted


def test_an_episode_without_steps_counts_by_the_version_it_was_admitted_with() -> None:
    assert EpisodeSelection(versions=range(1)).accepts(played())
    assert not EpisodeSelection(versions=range(1, 2)).accepts(played())


@pytest.mark.parametrize(
    ("low", "high", "reward", "accepted"),
    [
        (None, None, None, True),
        (0.5, None, None, False),
        (0.5, None, 0.5, True),
        (0.5, 0.7, 0.8, False),
        (None, 0.0, 0.0, True),
    ],
)
def test_rewards(low: float | None, high: float | None, reward: float | None, accepted: bool) -> None:
    rewards = RewardRange(low=low, high=high)
    assert of_trajectories(EpisodeSelection(), rewards)(played(reward=reward)) is accepted
    assert of_judgements(EpisodeSelection(), rewards, frozenset(Verdict))(judged(reward)) is accepted


def test_verdicts_and_the_trajectory_of_a_judgement_are_selected() -> None:
    only_failures = of_judgements(EpisodeSelection(), ANY, frozenset({Verdict.FAILURE}))
    assert not only_failures(judged(1.0))
    assert only_failures(judged(0.0, Verdict.FAILURE))
    assert not of_judgements(EpisodeSelection(task="t2"), ANY, frozenset(Verdict))(judged(1.0))


def test_values_may_be_named() -> None:
    assert choices(Outcome, "answered") == {Outcome.ANSWERED}
    assert choices(Outcome, ["answered", Outcome.FAILED]) == {Outcome.ANSWERED, Outcome.FAILED}
    assert choices(Outcome, ()) == frozenset(Outcome)
    with pytest.raises(ConfigurationError, match="write one of answered, done, step_limit"):
        choices(Outcome, "finished")
    assert version_range(3) == range(3, 4)


def test_starts() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    assert tail_start(BEGINNING) == TailStart()
    assert tail_start(NEW) == TailStart(only_new=True)
    assert tail_start(After(7)) == TailStart(after_seq=7)
    assert tail_start(at) == TailStart(since_s=at.timestamp())
    assert tail_start(timedelta(minutes=1), clock=lambda: 100.0) == TailStart(since_s=40.0)


def test_starts_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="no time zone"):
        tail_start(datetime(2026, 1, 2))
    with pytest.raises(ConfigurationError, match="BEGINNING"):
        tail_start(After(-1))
