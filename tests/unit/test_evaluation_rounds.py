"""Evaluation rounds, by value."""

from schemas.ids import EpisodeId, PolicyVersion
from trainer.feeding.evaluation_rounds import EvaluationRounds

_ROUND_0 = frozenset({EpisodeId("eval-0-a"), EpisodeId("eval-0-b")})
_ROUND_4 = frozenset({EpisodeId("eval-4-a")})


def _rounds() -> EvaluationRounds:
    return EvaluationRounds((PolicyVersion(0), PolicyVersion(4)))


def test_a_round_is_due_once_policies_serve_its_version() -> None:
    rounds = _rounds()
    assert rounds.due(None) == []
    assert rounds.due(0) == [0]
    assert rounds.due(4) == [0, 4]
    rounds.begin(PolicyVersion(0), _ROUND_0)
    assert rounds.due(3) == []
    assert rounds.due(5) == [4]


def test_a_round_that_does_not_wait_is_due_without_a_policy() -> None:
    assert EvaluationRounds((PolicyVersion(7),), waits=False).due(None) == [7]


def test_a_round_is_complete_when_all_its_episodes_are_judged_and_is_told_once() -> None:
    rounds = _rounds()
    rounds.begin(PolicyVersion(0), _ROUND_0)
    assert rounds.complete(lambda episodes: 1) == {}
    assert not rounds.is_complete(PolicyVersion(0))
    assert rounds.complete(lambda episodes: 0) == {PolicyVersion(0): _ROUND_0}
    assert rounds.complete(lambda episodes: 0) == {}
    assert rounds.is_complete(PolicyVersion(0))
    assert not rounds.all_complete


def test_all_are_complete_when_every_version_is() -> None:
    rounds = _rounds()
    rounds.begin(PolicyVersion(0), _ROUND_0)
    rounds.begin(PolicyVersion(4), _ROUND_4)
    seen = []
    for num_unfinished in (lambda episodes: len(set(episodes) - _ROUND_0), lambda _: 0):
        rounds.complete(num_unfinished)
        seen.append(rounds.all_complete)
    assert seen == [False, True]
    assert EvaluationRounds(()).all_complete
