"""Evaluation rounds, by value."""

from schemas.ids import EpisodeId, PolicyVersion
from trainer.feeding.evaluation_rounds import EvaluationRounds
from trainer.scores import Score

A, B = EpisodeId("eval-0-a"), EpisodeId("eval-0-b")
FIRST, FOURTH = PolicyVersion(0), PolicyVersion(4)


def _rounds() -> EvaluationRounds:
    return EvaluationRounds((FIRST, FOURTH))


def test_a_round_is_due_once_policies_serve_its_version() -> None:
    rounds = _rounds()
    assert rounds.due(None) == []
    assert rounds.due(0) == [0]
    assert rounds.due(4) == [0, 4]
    rounds.begin(FIRST, 2)
    assert rounds.due(3) == []
    assert rounds.due(5) == [4]


def test_a_round_that_does_not_wait_is_due_without_a_policy() -> None:
    assert EvaluationRounds((PolicyVersion(7),), waits=False).due(None) == [7]


def test_a_round_is_complete_when_all_its_episodes_are_judged_and_is_told_once() -> None:
    rounds = _rounds()
    rounds.begin(FIRST, 2)
    assert rounds.complete() == [], "not one of it is admitted"
    rounds.admit(FIRST, [A])
    rounds.judged(A, Score(success=True, reward=0.5))
    assert rounds.complete() == [], "one is still to be admitted"
    assert [each.num_admitted for each in rounds.to_admit()] == [1]
    rounds.admit(FIRST, [B])
    assert (rounds.missing, rounds.is_complete(FIRST)) == ({B}, False)
    rounds.judged(B, None)
    rounds.judged(A, Score(success=True, reward=0.5))
    [complete] = rounds.complete()
    assert (complete.num_scored, complete.num_successes, complete.total_reward) == (1, 1, 0.5)
    assert rounds.complete() == []
    assert rounds.is_complete(FIRST)
    assert not rounds.all_complete


def test_all_are_complete_when_every_version_is() -> None:
    rounds = _rounds()
    seen = []
    for version in (FIRST, FOURTH):
        rounds.begin(version, 1)
        rounds.admit(version, [EpisodeId(f"eval-{version}")])
        rounds.judged(EpisodeId(f"eval-{version}"), None)
        rounds.complete()
        seen.append(rounds.all_complete)
    assert seen == [False, True]
    assert EvaluationRounds(()).all_complete


def test_whoever_takes_over_begins_no_round_again_and_goes_on_with_the_open_ones() -> None:
    before = EvaluationRounds((FIRST, PolicyVersion(2), FOURTH))
    for version in (FIRST, PolicyVersion(2)):
        before.begin(version, 2)
    before.admit(FIRST, [A, B])
    before.judged(A, None)
    before.judged(B, None)
    before.complete()
    before.admit(PolicyVersion(2), [EpisodeId("eval-2-a")])
    after = EvaluationRounds((FIRST, PolicyVersion(2), FOURTH), through=before.through, open_rounds=before.memory())
    assert after.is_complete(FIRST)
    assert after.due(9) == [4]
    assert [(each.version, each.num_admitted) for each in after.to_admit()] == [(2, 1)]
    assert after.missing == {"eval-2-a"}
